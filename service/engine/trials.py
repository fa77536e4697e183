"""Calls by which the cost of a rung is learnt, without a client that waits for them."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kpi.window import KpiWindow
from model.predictor import Forecast
from service.budget import Deadline
from service.clock import Clock
from service.engine.cost import Measured, Pace
from service.engine.job import Ask
from service.engine.ladder import Ladder, Step, extents_of

_WINDOWS = (1, 4, 16)
_ROUNDS = 2

Call: TypeAlias = Callable[[Step, Sequence[KpiWindow], Ask], Awaitable[Sequence[Forecast]]]


@dataclass(frozen=True, slots=True)
class Trial:
    """One call to be tried.

    Attributes:
        step: The rung.
        windows: At least one.
        ask: What is asked of it.
    """

    step: Step
    windows: Sequence[KpiWindow]
    ask: Ask


class Trials:
    """Tries the rungs of a ladder.

    Args:
        windows: At least one; those to come look like them.
        batch_limit: Windows in one call.
        clock: Times the calls.
    """

    def __init__(self, windows: Sequence[KpiWindow], batch_limit: int, clock: Clock) -> None:
        self._windows = windows
        self._clock = clock
        self._sizes = [size for size in _WINDOWS if size <= batch_limit]

    def smallest(self, step: Step, ladder: Ladder) -> Trial:
        """A single window, as far ahead as the rung goes in one pass."""
        least, most = ladder.predictor.level_range
        levels = (least, most) if least < most else (least,)
        horizon = step.pass_steps or step.predictor.max_horizon
        return Trial(
            step,
            self._windows[:1],
            Ask(horizon, levels, Deadline(self._clock.monotonic_s(), math.inf)),
        )

    async def learn(self, step: Step, ladder: Ladder, pace: Pace, call: Call) -> None:
        """Have one rung called in several sizes; what that took is its cost from then on.

        Raises:
            ModelError: It cannot forecast them.
            InferenceError: It does not come back, or not with a forecast a window.
        """
        ask = self.smallest(step, ladder).ask
        for window in self._windows:  # what is paid once
            await call(step, [window], ask)
        measured: list[Measured] = []
        for size in self._sizes * _ROUNDS:
            for window in self._windows:
                many = [window] * size
                begun_s = self._clock.monotonic_s()
                await call(step, many, ask)
                duration_s = self._clock.monotonic_s() - begun_s
                measured.append(Measured(step.effort(extents_of(many), ask.horizon), duration_s))
        step.cost.start_from(measured, pace, self._clock.monotonic_s())
