"""`/healthz` and `/readyz`: for whoever runs the service."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request, Response

from service.container import Phase, Services, services_of
from service.schemas import Health

router = APIRouter(tags=["operations"])

_UNAVAILABLE: dict[int | str, dict[str, Any]] = {
    503: {"model": Health, "description": "It is not, and why."}
}


@router.get(
    "/healthz",
    summary="Does the process live?",
    description="503 where only a restart helps: the start failed, or the engine died.",
    response_model=Health,
    responses=_UNAVAILABLE,
)
async def healthz(request: Request, response: Response) -> Health:
    """Liveness."""
    services = services_of(request)
    if is_alive(services):
        return Health(status="alive")
    response.status_code = HTTPStatus.SERVICE_UNAVAILABLE
    return Health(status="failed", reason=services.unreadiness())


def is_alive(services: Services) -> bool:
    """Whether the process is, or will become, of use without a restart."""
    return services.phase in (Phase.STARTING, Phase.DRAINING) or services.unreadiness() is None


@router.get(
    "/readyz",
    summary="Does the service take requests?",
    description="503 while the model is loaded and the journal replayed, and while the service "
    "stops.",
    response_model=Health,
    responses=_UNAVAILABLE,
)
async def readyz(request: Request, response: Response) -> Health:
    """Readiness."""
    services = services_of(request)
    reason = services.unreadiness()
    if reason is None:
        return Health(status="ready")
    response.status_code = HTTPStatus.SERVICE_UNAVAILABLE
    return Health(status=services.phase.value, reason=reason)
