"""When a synthetic cell is sampled: regimes, sampling steps, lengths and the absolute clock.

A batch has one step and one length, so that lag offsets are shared; every cell has its own start.
Seasonal shapes hang on the UTC clock, because a model's calendar features do too.

Axes: N series, T history samples, H future samples, L = T + H samples, D local days.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

K = TypeVar("K")

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
WEEK_MS = 7 * DAY_MS

_EPOCH_WEEKDAY = 3  # 1970-01-01 was a Thursday; Monday is 0
_FIRST_START_MS = 40 * 365 * DAY_MS
_LAST_START_MS = 65 * 365 * DAY_MS
_DAY_EDGE_GUARD = 1e-9  # days; keeps an exact midnight out of the day before it


class Regime(StrEnum):
    """How densely a batch is sampled; decides which families it may hold."""

    HOUR = "hour"
    MINUTE = "minute"
    SECOND = "second"
    DAY = "day"


REGIME_SHARES: Mapping[Regime, float] = {
    Regime.HOUR: 0.42,
    Regime.MINUTE: 0.34,
    Regime.SECOND: 0.20,
    Regime.DAY: 0.04,
}

TRAINING_STEPS_MS: Mapping[Regime, Mapping[int, float]] = {
    Regime.HOUR: {15 * MINUTE_MS: 0.25, 30 * MINUTE_MS: 0.15, HOUR_MS: 0.6},
    Regime.MINUTE: {minutes * MINUTE_MS: 0.2 for minutes in (1, 2, 3, 5, 10)},
    Regime.SECOND: {seconds * SECOND_MS: 0.25 for seconds in (1, 2, 5, 10)},
    Regime.DAY: {DAY_MS: 0.5, WEEK_MS: 0.5},
}

# 72 and 120 samples a day, and second-like steps between the trained ones.
HELD_OUT_STEPS_MS: Mapping[Regime, Mapping[int, float]] = {
    Regime.HOUR: {20 * MINUTE_MS: 1.0},
    Regime.MINUTE: {12 * MINUTE_MS: 0.5, 4 * MINUTE_MS: 0.5},
    Regime.SECOND: {3 * SECOND_MS: 0.5, 15 * SECOND_MS: 0.5},
    Regime.DAY: {DAY_MS: 0.5, WEEK_MS: 0.5},
}

_LEAST_CONTEXT_PATCHES = 4
_LEAST_CONTEXT_STEPS = 32
_LONG_HISTORY_SHARES: Mapping[Regime, float] = {
    Regime.HOUR: 0.5,
    Regime.MINUTE: 0.5,
    Regime.SECOND: 0.0,
    Regime.DAY: 0.0,
}

_WHOLE_DAYS = (1, 2, 3, 7, 14, 28)
_WHOLE_DAYS_SHARE = 0.35


@dataclass(frozen=True)
class Timing:
    """What all series of a batch share.

    Attributes:
        regime: How densely the batch is sampled.
        step_ms: Sampling step.
        context_steps: Samples a model should see, counted back from the origin.
        history_steps: T, samples before the origin; at least `context_steps`.
        horizon: H, samples after the origin.
    """

    regime: Regime
    step_ms: int
    context_steps: int
    history_steps: int
    horizon: int


@dataclass(frozen=True)
class LocalTime:
    """The clock on a cell's wall.

    Attributes:
        day_ratio: (N, L) float32, time of day in 0..1.
        day: (N, L) index of the local day, counted from each series' first.
        weekday: (N, D) 0 Monday .. 6 Sunday of every local day that a series touches.
        number: (N, D) the same days counted from 1970-01-01.
    """

    day_ratio: NDArray[np.float32]
    day: NDArray[np.intp]
    weekday: NDArray[np.int64]
    number: NDArray[np.int64]


@dataclass(frozen=True)
class Clock:
    """The absolute time of N series of L samples each.

    Attributes:
        regime: How densely the series are sampled.
        step_ms: Sampling step.
        start_ms: (N,) int64 start of the first sample, UTC.
        length: L.
    """

    regime: Regime
    step_ms: int
    start_ms: NDArray[np.int64]
    length: int

    @property
    def rows(self) -> int:
        """N, the number of series."""
        return len(self.start_ms)

    @property
    def samples_per_day(self) -> float:
        """How many samples a day has; below 1 for weekly data."""
        return DAY_MS / self.step_ms

    def take(self, rows: NDArray[np.intp]) -> Clock:
        """The clock of some of the series, in the order of `rows`."""
        return Clock(self.regime, self.step_ms, self.start_ms[rows], self.length)

    def days_since_start(self) -> NDArray[np.float32]:
        """(L,) age of every sample in days."""
        return (np.arange(self.length) * (self.step_ms / DAY_MS)).astype(np.float32)

    def local(self, shift_ms: NDArray[np.int64]) -> LocalTime:
        """Day, time of day and weekday where local time is UTC + `shift_ms` (N,)."""
        shifted_ms = self.start_ms + shift_ms
        first_day = shifted_ms // DAY_MS
        phase = (shifted_ms - first_day * DAY_MS) / DAY_MS + _DAY_EDGE_GUARD
        position = phase[:, None] + np.arange(self.length) * (self.step_ms / DAY_MS)  # (N, L)
        day = position.astype(np.intp)
        number = first_day[:, None] + np.arange(day[:, -1].max() + 1)  # (N, D)
        return LocalTime(
            day_ratio=(position - day).astype(np.float32),
            day=day,
            weekday=(number + _EPOCH_WEEKDAY) % 7,
            number=number,
        )


def draw_timing(
    rng: np.random.Generator,
    *,
    max_context_steps: int,
    max_history_steps: int,
    max_horizon: int,
    patch: int,
    held_out: bool,
) -> Timing:
    """Draw the step and the lengths of a batch; every length is a whole number of patches.

    Horizons are drawn log-uniformly: short ones are asked for more often and cost less. Many
    histories by minutes and hours are whole days or weeks, as people ask for them: of one day, the
    horizon has the values of a day ago and the context has none to tell what they are worth.
    """
    regime = draw_key(rng, REGIME_SHARES)
    # Half of the held-out batches keep a known step, so that new noise and new shapes are
    # also judged apart from new periods.
    unseen_step = held_out and rng.random() < 0.5
    step_ms = draw_key(rng, (HELD_OUT_STEPS_MS if unseen_step else TRAINING_STEPS_MS)[regime])
    most_context = max_context_steps // patch
    least_context = max(_LEAST_CONTEXT_PATCHES, -(-_LEAST_CONTEXT_STEPS // patch))
    least_context = min(least_context, most_context)
    context = int(rng.integers(least_context, most_context, endpoint=True))
    if regime is Regime.SECOND and rng.random() < 0.6:
        # Who samples by the second looks back for a minute or two.
        context = int(np.exp(rng.uniform(np.log(least_context), np.log(most_context + 1))))
    history = context
    if rng.random() < _LONG_HISTORY_SHARES[regime]:
        most_history = max(context, max_history_steps // patch)
        history = int(np.exp(rng.uniform(np.log(context), np.log(most_history + 1))))
    whole_days = [
        patches
        for patches in (-(-days * DAY_MS // (step_ms * patch)) for days in _WHOLE_DAYS)
        if least_context <= patches <= max_history_steps // patch
    ]
    has_days = regime in (Regime.HOUR, Regime.MINUTE) and whole_days
    if has_days and rng.random() < _WHOLE_DAYS_SHARE:
        history = int(rng.choice(whole_days))
        context = min(history, most_context)
    horizon = int(np.exp(rng.uniform(0.0, np.log(max_horizon // patch + 1))))
    return Timing(regime, step_ms, context * patch, history * patch, horizon * patch)


def draw_starts(rng: np.random.Generator, cells: int, step_ms: int) -> NDArray[np.int64]:
    """(cells,) random starts on the grid of the step; weekly series start on any day."""
    grid_ms = min(step_ms, DAY_MS)
    return rng.integers(_FIRST_START_MS // grid_ms, _LAST_START_MS // grid_ms, cells) * grid_ms


def draw_key(rng: np.random.Generator, shares: Mapping[K, float]) -> K:
    """One key, drawn in proportion to its share; shares need not sum to 1."""
    keys = list(shares)
    edges = np.cumsum(list(shares.values()))
    return keys[min(int(np.searchsorted(edges, rng.random() * edges[-1], "right")), len(keys) - 1)]
