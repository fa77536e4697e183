"""What a request of KServe's protocols may demand of the engine, in its parameters; an extension.

The words are those of `POST /v1/forecast`.
"""

from __future__ import annotations

from pydantic import BaseModel, Field

from model.predictor import Rung
from service.demands import Stated
from service.engine import Priority


class DemandFields(BaseModel):
    """Fields for the bodies and queries of all protocols."""

    budget_ms: float | None = Field(
        None, description="Latency budget from arrival to answer; an extension."
    )
    minimum_rung: Rung | None = Field(
        None,
        description="Least rung that is an answer; below it the request is refused with 429; an "
        "extension.",
        examples=["short"],
    )
    priority: Priority | None = Field(
        None,
        description="A batch request is worked on while no control request waits, and may take the "
        "profile's largest budget where it states none; an extension.",
        examples=["control"],
    )

    @property
    def demands(self) -> Stated:
        """What they say."""
        return Stated(self.budget_ms, self.minimum_rung, self.priority)
