"""Who answers requests that name no model."""

from __future__ import annotations

from dataclasses import dataclass

from service.models.reference import ModelReference


@dataclass(frozen=True, slots=True)
class Routing:
    """Who answers requests that name no model.

    Attributes:
        default: Who does; None for the base model, wherever its file goes.
        canary: Who does for a share of them; where it is not served, the default answers.
        canary_share: That share, 0 to 1.
    """

    default: ModelReference | None = None
    canary: ModelReference | None = None
    canary_share: float = 0.0
