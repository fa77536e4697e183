"""The rungs that a service can answer by: predictors of one model, the best first.

Axis legend: K KPIs, T samples, H steps.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from kpi.window import KpiWindow
from model.predictor import ModelIdentity, Predictor, Rung
from service.engine.cost import CostModel, Effort

_THOUSAND = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One rung of one model; two that look alike are two.

    Attributes:
        rung: Its name.
        predictor: Who answers.
        most_steps: Samples of a window that enter it at most; None for all.
        pass_steps: Horizon that it answers in one pass; a longer one takes several. None for any.
        cost: What it takes, as far as that is known.
    """

    rung: Rung
    predictor: Predictor
    most_steps: int | None = None
    pass_steps: int | None = None
    cost: CostModel = field(default_factory=CostModel)

    def shape(self, window: KpiWindow) -> tuple[int, int, int]:
        """Windows of one shape go through the predictor together."""
        return window.step_ms, len(window.kpis), self._steps(window)

    def effort(self, windows: Sequence[KpiWindow], horizon: int) -> Effort:
        """What it takes to forecast these windows together."""
        passes = 1 if self.pass_steps is None else -(-horizon // self.pass_steps)
        samples = sum(len(w.kpis) * (passes * self._steps(w) + horizon) for w in windows)
        shapes = {self.shape(window) for window in windows}
        return Effort(samples / _THOUSAND, passes * len(shapes))

    def _steps(self, window: KpiWindow) -> int:
        return window.steps if self.most_steps is None else min(window.steps, self.most_steps)


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """Rungs of one model, the best first.

    Attributes:
        steps: At least one; the first one decides what can be asked.

    Raises:
        ValueError: There is none, or they are not in the order of `Rung`.
    """

    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        order = [list(Rung).index(step.rung) for step in self.steps]
        if not order or any(later <= earlier for earlier, later in itertools.pairwise(order)):
            raise ValueError(
                f"expected rungs in the order {[rung.value for rung in Rung]}, at least one, got "
                f"{[step.rung.value for step in self.steps]}"
            )

    @property
    def predictor(self) -> Predictor:
        """Who answers at the best rung."""
        return self.steps[0].predictor

    @property
    def identity(self) -> ModelIdentity:
        """Whose rungs they are."""
        return self.predictor.identity

    def down_to(self, least: Rung) -> tuple[Step, ...]:
        """The rungs that are no worse than `least`."""
        order = list(Rung)
        return tuple(step for step in self.steps if order.index(step.rung) <= order.index(least))

    def step_of(self, rung: Rung) -> Step | None:
        """The step of this rung, None where the model has none."""
        return next((step for step in self.steps if step.rung is rung), None)
