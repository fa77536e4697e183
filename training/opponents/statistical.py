"""What the statistical opponents share: one series at a time, gaps filled, intervals of their own.

Axis legend: T samples of history, H steps, L levels.
"""

from __future__ import annotations

import logging
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from model.lags import DAY_MS, WEEK_MS, period_steps
from training.opponents.fallback import FallbackOpponent, Place
from training.opponents.gaps import filled

MAX_CONTEXT_STEPS = 1_500
"""Two weeks of quarters of an hour, two days of two minutes; cost grows faster than length."""
FEWEST_SAMPLES = 10
FEWEST_PERIODS = 2

log = logging.getLogger(__name__)


class Method(Protocol):
    """A model of statsforecast."""

    def forecast(self, y: NDArray[np.float64], h: int, level: list[float]) -> Mapping[str, Any]:
        """Mean (H,) and the bounds of central intervals, `lo-80` and `hi-80` for 80 %."""


class StatisticalOpponent(FallbackOpponent):
    """Fits a method anew to the end of every series that it is given."""

    @property
    def context_steps(self) -> int:
        """Most samples that a forecast is made from."""
        return MAX_CONTEXT_STEPS

    @abstractmethod
    def _method(self, periods: Sequence[int]) -> Method:
        """The method for seasons of so many steps, shortest first; none for no season."""

    def _quantiles(
        self, places: Sequence[Place], horizon: int, levels: Sequence[float]
    ) -> list[NDArray[np.float64] | None]:
        return [self._one(place, horizon, levels) for place in places]

    def _one(
        self, place: Place, horizon: int, levels: Sequence[float]
    ) -> NDArray[np.float64] | None:
        series = filled(place.series[None, -MAX_CONTEXT_STEPS:])[0]
        series = series[~np.isnan(series)]  # what lies before the first value
        if len(series) < FEWEST_SAMPLES:
            return None
        if np.ptp(series) == 0:  # nothing to fit: the methods divide by the spread
            return np.full((horizon, len(levels)), series[-1])
        periods = seasons(place.window.step_ms, len(series))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                method = self._method(periods)
                found = method.forecast(series, horizon, level=_central(levels))
                return _at_levels(found, levels)
        # The library raises whatever its numerics run into; the run goes on and counts it.
        except Exception as error:
            log.debug("opponent=%s cell=%s failed: %r", self.name, place.window.cell, error)
            return None


def seasons(step_ms: int, steps: int) -> list[int]:
    """Lengths of day and week in steps, where the series holds at least two of them."""
    periods = (period_steps(period_ms, step_ms) for period_ms in (DAY_MS, WEEK_MS))
    return [p for p in periods if p is not None and FEWEST_PERIODS * p <= steps]


def _percent(level: float) -> float:
    """Per cent between a level and its mirror image: 80 for 0.1 and for 0.9."""
    return round(100 * abs(2 * level - 1), 6)


def _central(levels: Sequence[float]) -> list[float]:
    """The central intervals whose bounds are these levels, in per cent, narrow ones first."""
    return sorted({_percent(level) for level in levels} - {0.0})


def _at_levels(found: Mapping[str, Any], levels: Sequence[float]) -> NDArray[np.float64]:
    """Quantiles (H, L) from the mean and the bounds of central intervals."""
    columns = []
    for level in levels:
        percent = _percent(level)
        key = f"{'lo' if level < 0.5 else 'hi'}-{percent}" if percent else "mean"
        columns.append(np.asarray(found[key], dtype=np.float64))
    return np.stack(columns, axis=-1)
