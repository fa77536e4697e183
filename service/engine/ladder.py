"""The rungs that a service can answer by: predictors of one model, the best first.

Axis legend: K KPIs, T samples, H steps.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from kpi.window import KpiWindow
from model.predictor import ModelIdentity, Predictor, Rung
from service.engine.cost import CostModel, Effort

Extent: TypeAlias = tuple[int, int, int]
"""Of a window: length of a sample in milliseconds, KPIs, samples of each."""

_THOUSAND = 1_000
_RUNGS = tuple(Rung)


def extents_of(windows: Sequence[KpiWindow]) -> list[Extent]:
    """Those of windows, in order."""
    return [(window.step_ms, *window.values.shape) for window in windows]


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

    def shape(self, extent: Extent) -> Extent:
        """Windows of one shape go through the predictor together."""
        step_ms, kpis, steps = extent
        return step_ms, kpis, steps if self.most_steps is None else min(steps, self.most_steps)

    def passes(self, horizon: int) -> int:
        """How often a window goes through the predictor."""
        return 1 if self.pass_steps is None else -(-horizon // self.pass_steps)

    def effort(self, extents: Sequence[Extent], horizon: int) -> Effort:
        """What it takes to forecast windows of these extents together."""
        passes = self.passes(horizon)
        samples, shapes = 0, set()
        for extent, number in Counter(extents).items():  # of many windows most are alike
            shape = self.shape(extent)
            samples += number * shape[1] * (passes * shape[2] + horizon)
            shapes.add(shape)
        return Effort(samples / _THOUSAND, passes * len(shapes))


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
        order = [_RUNGS.index(step.rung) for step in self.steps]
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
        last = _RUNGS.index(least)
        return tuple([step for step in self.steps if _RUNGS.index(step.rung) <= last])

    def step_of(self, rung: Rung) -> Step | None:
        """The step of this rung, None where the model has none."""
        return next((step for step in self.steps if step.rung is rung), None)
