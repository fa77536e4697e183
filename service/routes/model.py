"""`GET /v1/model`: the model card."""

from __future__ import annotations

from fastapi import APIRouter, Request

from service.container import services_of
from service.routes.responses import problems
from service.schemas import ModelCard

router = APIRouter(tags=["model"])


@router.get(
    "/v1/model",
    summary="Describe the model",
    description="Who answers here, what it can be asked, where it comes from and how good it is.",
    response_model=ModelCard,
    responses=problems(503),
)
async def model(request: Request) -> ModelCard:
    """The card of the loaded model."""
    return services_of(request).require().card
