"""Pages for people: the operator's page at `/`, the API's at `/docs`.

They load nothing from elsewhere, because the machines that run beside a RIC often cannot.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from service.errors import NotFoundError

router = APIRouter(include_in_schema=False)

_STATIC = Path(__file__).parent.parent / "static"
_TYPES: Mapping[str, str] = MappingProxyType(
    {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
)
_POLICY = "default-src 'self'; base-uri 'none'; frame-ancestors 'self'"


@router.get("/")
async def operator() -> Response:
    """The operator's page."""
    return _page("operator.html")


@router.get("/docs")
async def docs() -> Response:
    """The API, rendered from `/openapi.json`."""
    return _page("docs.html")


@router.get("/static/{name}")
async def static(name: str) -> Response:
    """A style sheet or script of these pages."""
    path = _STATIC / name
    # Only names that the package holds: nothing of the request becomes part of a path.
    if name not in _names() or path.suffix not in _TYPES:
        raise NotFoundError(f"there is no page part {name!r}")
    return Response(
        path.read_bytes(),
        media_type=_TYPES[path.suffix],
        headers={"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"},
    )


def _page(name: str) -> Response:
    return HTMLResponse(
        (_STATIC / name).read_bytes(),
        headers={
            "Cache-Control": "no-cache",
            "Content-Security-Policy": _POLICY,
            "X-Content-Type-Options": "nosniff",
        },
    )


@cache
def _names() -> frozenset[str]:
    return frozenset(path.name for path in _STATIC.iterdir())
