"""`GET /metrics`: for Prometheus."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST

from service.container import services_of

router = APIRouter(tags=["operations"])


@router.get(
    "/metrics",
    summary="Read the metrics",
    description="All metric families in Prometheus' text format; docs/operations.md lists them.",
    response_class=PlainTextResponse,
)
async def metrics(request: Request) -> Response:
    """One scrape."""
    text = await services_of(request).metrics.scrape()
    return Response(text, media_type=CONTENT_TYPE_LATEST)
