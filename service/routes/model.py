"""`GET /v1/model`: the card of the model that answers where none is named."""

from __future__ import annotations

from fastapi import APIRouter, Request

from service.container import services_of
from service.routes.responses import problems
from service.schemas import ModelCard

router = APIRouter(tags=["model"])


@router.get(
    "/v1/model",
    summary="Describe the model",
    description="Who answers requests that name no model, what it can be asked, where it comes "
    "from and how good it is.",
    response_model=ModelCard,
    responses=problems(503),
)
async def model(request: Request) -> ModelCard:
    """The card of the default model."""
    return services_of(request).require().models.default.card
