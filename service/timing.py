"""Where the time of one request goes: kept beside it, told to metrics and to the client.

The client's part is the header `Server-Timing` (W3C Server Timing), which browsers and tracers
show.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from fastapi import Request
from starlette.types import Scope

from service.clock import Clock
from service.errors import ClientGoneError, DeadlineError, RequestError
from service.metrics import Metrics, Stage

SCOPE_KEY = "rancast.timing"

_UNMATCHED = "unmatched"
_JUST_LATE = math.nextafter(1.0, 2.0)


@dataclass(slots=True)
class RequestTiming:
    """When a request arrived, what it may take, and what it has taken.

    Attributes:
        arrival_s: On the monotonic clock.
        clock: That clock.
        metrics: Told of stages.
        budget_ms: None until a route has worked it out, or where the route has no budget.
        stages_s: Seconds by stage, in the order in which they ended.
        error: What it was answered with instead of what it asked for, None where nothing was wrong.
    """

    arrival_s: float
    clock: Clock
    metrics: Metrics
    budget_ms: float | None = None
    stages_s: dict[Stage, float] = field(default_factory=dict)
    error: type[RequestError] | None = None

    @contextmanager
    def stage(self, stage: Stage) -> Iterator[None]:
        """Time what happens inside as a stage, unless it raises."""
        begun_s = self.clock.monotonic_s()
        yield
        duration_s = self.clock.monotonic_s() - begun_s
        self.metrics.observe_stage(stage, duration_s)
        self.note(stage, duration_s)

    def note(self, stage: Stage, duration_s: float) -> None:
        """A stage took this long; metrics know of it already."""
        self.stages_s[stage] = self.stages_s.get(stage, 0.0) + duration_s

    def budget_used(self, duration_s: float) -> float | None:
        """Share of its budget that an accepted request used; above 1 it was late.

        None of one that was refused or failed: such an answer is quick, and says nothing of how
        long accepted ones take. One that was given up is late even where its time was not over yet;
        one whose client left is late only where it was.
        """
        if self.budget_ms is None:
            return None
        used = 1000 * duration_s / self.budget_ms
        if self.error is None:
            return used
        if self.error is DeadlineError:
            return max(used, _JUST_LATE)
        return used if self.error is ClientGoneError and used > 1 else None

    def header(self) -> str:
        """The value of `Server-Timing` for an answer that is sent now, in milliseconds."""
        spent_s = {stage.value: duration_s for stage, duration_s in self.stages_s.items()}
        spent_s["total"] = self.clock.monotonic_s() - self.arrival_s
        parts = [f"{name};dur={1000 * duration_s:.3f}" for name, duration_s in spent_s.items()]
        if self.budget_ms is not None:
            parts.append(f"budget;dur={self.budget_ms:g}")
        return ", ".join(parts)


def route_of(scope: Scope) -> str:
    """The template of a request's route, never its path: a cell's name is no label."""
    path: str = getattr(scope.get("route"), "path", _UNMATCHED)
    return path


def timing_of(request: Request) -> RequestTiming:
    """The timing of this request."""
    timing = request.scope[SCOPE_KEY]
    assert isinstance(timing, RequestTiming)
    return timing
