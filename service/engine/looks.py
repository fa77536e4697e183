"""What a request looks like that has not been read: like the newest one of its size.

Whether it shares a call with those that wait depends on its horizon, its levels and the length of
its windows. Whoever asks for the same again and again mostly asks in bodies of the same length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kpi.window import KpiWindow
from service.engine.job import Ask

_UNKNOWN = np.full((1, 1), np.nan, dtype=np.float32)
_MOST_KEPT = 64


@dataclass(frozen=True, slots=True)
class Look:
    """A request as far as the engine's plan is concerned.

    Attributes:
        horizon: Steps to forecast.
        levels: Quantile levels.
        window: Its first one, without its samples.
    """

    horizon: int
    levels: tuple[float, ...]
    window: KpiWindow


class Looks:
    """The newest look of requests by the number of samples that was foretold of them."""

    def __init__(self) -> None:
        self._kept: dict[int, Look] = {}

    def keep(self, windows: Sequence[KpiWindow], ask: Ask) -> None:
        """A request was read of which a number of samples had been foretold; others tell nothing.

        Args:
            windows: At least one.
            ask: What it wants.
        """
        samples = ask.foretold_samples
        if samples is None:
            return
        step_ms, shape = windows[0].step_ms, windows[0].values.shape
        known = self._kept.get(samples)
        if (
            known is not None
            and (known.horizon, known.levels) == (ask.horizon, ask.levels)
            and (known.window.step_ms, known.window.values.shape) == (step_ms, shape)
        ):
            return
        if known is None and len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        window = _blank(shape, step_ms)
        self._kept[samples] = Look(ask.horizon, ask.levels, window)

    def find(self, samples: int | None) -> Look:
        """What a request looks like of which so many samples are foretold; None: any at all."""
        if samples is None:
            return _LEAST
        return self._kept.get(samples) or Look(1, (), _blank((1, samples), 1))


def _blank(shape: tuple[int, ...], step_ms: int) -> KpiWindow:
    """A window of this shape that takes no memory."""
    return KpiWindow("", ("",) * shape[0], 0, step_ms, np.broadcast_to(_UNKNOWN, shape))


_LEAST = Look(1, (), _blank((1, 1), 1))
