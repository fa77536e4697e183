"""Rows for a direct regression: one a window and step ahead, all relative to the window's level.

What is in a row: the last values, means over growing spans, spread and peak, the values one to
seven days and one to four weeks before the step, their means, hour and weekday of the local clock,
steps ahead, and the logarithm of the level.

Axis legend: N windows, C samples of context, H steps, F features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.lags import DAY_MS, WEEK_MS, period_steps
from training.backtest.hours import HOUR_MS, MINUTE_MS, local_times
from training.opponents.gaps import filled

MAX_CONTEXT_STEPS = 2_048
CONTEXT_WEEKS = 4
FEWEST_CONTEXT_STEPS = 64
LAST_VALUES = (1, 2, 3, 4, 6)
SPANS = (5, 15, 30, 60, 180, 360, 720)
SPREAD_STEPS = 60
DAYS = 7
WEEKS = 4
THURSDAY = 3
"""Weekday of 1970-01-01, Monday being 0."""

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class RowPlan:
    """How windows of one step become rows.

    Attributes:
        step_ms: Length of a sample.
        horizon: H, steps ahead.
        extended: Whether to add the second half of the features: change since the season before,
            spread over several spans, the season's shape around the step, share of missing samples.
    """

    step_ms: int
    horizon: int
    extended: bool = False

    @property
    def context_steps(self) -> int:
        """C: four weeks where these are few samples enough."""
        wanted = CONTEXT_WEEKS * WEEK_MS // self.step_ms
        return max(FEWEST_CONTEXT_STEPS, min(MAX_CONTEXT_STEPS, wanted))

    @property
    def features(self) -> int:
        """F."""
        return int(self.rows(np.ones((1, self.context_steps)), [0], "UTC", 1.0)[0].shape[-1])

    def rows(
        self, context: NDArray[np.floating], starts_ms: Sequence[int], zone: str, floor: float
    ) -> tuple[NDArray[np.float32], Matrix]:
        """Features and the level that they, and a target, are divided by.

        Args:
            context: (N, C), NaN where missing.
            starts_ms: N begins of the first step ahead.
            zone: IANA name of the cells' zone.
            floor: Added to the level, so that an idle window is no division by zero.

        Returns:
            (N, H, F) and (N,). NaN where the history does not reach back so far.
        """
        x = filled(context)
        level = np.nan_to_num(_last_mean(x, x.shape[1], np.abs(x))) + floor
        relative = x / level[:, None]
        fixed = self._fixed(relative, context)  # each (N,)
        moving = self._moving(relative) + self._clock(starts_ms, zone)  # each (N, H)
        count, steps = len(x), self.horizon
        moving.append(np.broadcast_to(np.arange(steps, dtype=np.float64), (count, steps)))
        out = np.empty((count, steps, len(fixed) + len(moving) + 1), dtype=np.float32)
        for column, values in enumerate(fixed):
            out[:, :, column] = values[:, None]
        for column, values in enumerate(moving, start=len(fixed)):
            out[:, :, column] = values
        out[:, :, -1] = np.log(level)[:, None]
        return out, level

    def _fixed(self, x: Matrix, context: NDArray[np.floating]) -> list[Matrix]:
        """Features that are the same for every step ahead, each (N,)."""
        columns = [x[:, -back] for back in LAST_VALUES]
        columns += [_last_mean(x, span) for span in SPANS if span <= x.shape[1]]
        columns += [_spread(x, SPREAD_STEPS), _peak(x, SPREAD_STEPS)]
        if self.extended:
            for span in (15, 180, 720):
                columns += [_spread(x, span), _peak(x, span), -_peak(-x, span)]
            columns.append(np.isnan(context[:, -SPREAD_STEPS:]).mean(axis=1))
            columns.append(x[:, -1] - x[:, -2])
            for period in self._periods():
                columns += [
                    _last_mean(x, span) - _last_mean(x[:, :-period], span)
                    for span in (3, max(3, period // 8), max(3, period // 2))
                ]
        return columns

    def _moving(self, x: Matrix) -> list[Matrix]:
        """Features of the season before each step ahead, each (N, H)."""
        columns = []
        day, week = (self._repeated(p) for p in (DAY_MS, WEEK_MS))
        if day is not None:
            days = self._seasonal(x, day, DAYS)  # (R, N, H)
            mean = _mean(days)
            columns += [*days[: min(3, len(days))], mean, self._around(x, day, 2)]
            if self.extended:
                now = _mean(self._seasonal(x, day, DAYS, ahead=-1))[:, :1]
                columns += [_median(days), mean + x[:, -1:] - now]
                columns += [self._around(x, day, day // 24 + 1), self._around(x, day, day // 8 + 1)]
        if week is not None:
            weeks = self._seasonal(x, week, WEEKS)
            columns += [*weeks, _mean(weeks)]
            if self.extended:
                columns += [_median(weeks), self._around(x, week, week // 168 + 1)]
        return columns

    def _clock(self, starts_ms: Sequence[int], zone: str) -> list[Matrix]:
        """Hour and weekday of the local clock, zero below a minute, each (N, H)."""
        if self.step_ms < MINUTE_MS:
            return []
        local = local_times(starts_ms, self.horizon, self.step_ms, zone)
        hour = local % DAY_MS / HOUR_MS
        weekday = (local // DAY_MS + THURSDAY) % 7
        return [hour, weekday.astype(np.float64)]

    def _periods(self) -> list[int]:
        """Day and week in steps, where a context holds one and more."""
        periods = (self._repeated(p) for p in (DAY_MS, WEEK_MS))
        return [p for p in periods if p is not None]

    def _repeated(self, period_ms: int) -> int | None:
        """Steps in a period, or None where it is no season or a context is too short for it."""
        period = period_steps(period_ms, self.step_ms)
        return period if period is not None and period < self.context_steps else None

    def _seasonal(self, x: Matrix, period: int, repeats: int, ahead: int = 0) -> Matrix:
        """Samples one to `repeats` periods before each step ahead, moved by `ahead`: (R, N, H).

        R is less than `repeats` where the context is too short for so many.
        """
        repeats = min(repeats, self.context_steps // period)
        phase = np.arange(self.horizon) % period + ahead
        back = period * np.arange(1, repeats + 1)[:, None] - phase  # (R, H)
        return np.moveaxis(_at(x, back), 1, 0)

    def _around(self, x: Matrix, period: int, radius: int) -> Matrix:
        """Mean of the samples around one period before each step ahead: (N, H)."""
        total = np.cumsum(np.pad(np.nan_to_num(x), ((0, 0), (1, 0))), axis=1)
        count = np.cumsum(np.pad(~np.isnan(x), ((0, 0), (1, 0))), axis=1)
        steps = x.shape[1]
        middle = steps - period + np.arange(self.horizon) % period
        first = np.clip(middle - radius, 0, steps)
        last = np.clip(middle + radius + 1, 0, steps)
        return _ratio(total[:, last] - total[:, first], count[:, last] - count[:, first])


def _at(x: Matrix, back: NDArray[np.int64]) -> Matrix:
    """Samples so many steps from the end, NaN beyond the ends: (N, *back.shape)."""
    steps = x.shape[1]
    inside = (back >= 1) & (back <= steps)
    return np.where(inside, x[:, np.where(inside, steps - back, 0)], np.nan)


def _last_mean(x: Matrix, span: int, values: Matrix | None = None) -> Matrix:
    return _mean((x if values is None else values)[:, -span:].T)


def _spread(x: Matrix, span: int) -> Matrix:
    part = x[:, -span:].T
    return np.sqrt(_mean((part - _mean(part)) ** 2))


def _peak(x: Matrix, span: int) -> Matrix:
    part = x[:, -span:]
    peak = np.where(np.isnan(part), -np.inf, part).max(axis=1, initial=-np.inf)
    return np.where(np.isfinite(peak), peak, np.nan)


def _mean(samples: Matrix) -> Matrix:
    """Mean over the first axis of what is there."""
    return _ratio(np.nan_to_num(samples).sum(axis=0), (~np.isnan(samples)).sum(axis=0))


def _median(samples: Matrix) -> Matrix:
    """Median over the first axis of what is there, NaN where nothing is."""
    count = (~np.isnan(samples)).sum(axis=0)
    ordered = np.sort(samples, axis=0)  # NaN last
    low = np.take_along_axis(ordered, np.maximum((count - 1) // 2, 0)[None], axis=0)[0]
    high = np.take_along_axis(ordered, np.minimum(count // 2, len(samples) - 1)[None], axis=0)[0]
    return np.where(count > 0, (low + high) / 2, np.nan)


def _ratio(total: Matrix, count: NDArray[np.int64]) -> Matrix:
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
