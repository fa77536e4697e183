"""What is known beforehand of a synthetic cell: public holidays and planned events.

Both act on the cell's activity, and most of the cells also tell them to the model: a forecaster
must use what it is told and live without it.

Axes: B cells, L samples, D days counted from the day before the first sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from training.synthetic.filters import chance, log_uniform
from training.synthetic.timing import DAY_MS, Regime

DAYS_BEFORE = 9
"""Days before the first sample for which holidays are drawn: flags look back a week."""

_KNOWN_SHARE = 0.75
_HOLIDAY_CELLS = 0.7
_SOON_SHARE = 0.3
_SHOWN_SHARE = 0.5
_SHOWN_DAYS = 21
_EVENT_CELLS = 0.3
_FIRST_HOUR, _LAST_HOUR = 9.0, 21.0


@dataclass(frozen=True)
class Planned:
    """Holidays and events of B cells, and what of them the model is told.

    Attributes:
        first_day: (B,) day of column 0 of `holidays`, counted from 1970-01-01.
        holidays: (B, D) days that are public holidays.
        event_load: (B, L) 0..1, how far an event is under way.
        told_holidays: (B, D) the holidays that are told.
        told_events: (B, L) share of each sample that told events cover.
    """

    first_day: NDArray[np.int64]
    holidays: NDArray[np.bool_]
    event_load: NDArray[np.float32]
    told_holidays: NDArray[np.bool_]
    told_events: NDArray[np.float32]

    def take(self, rows: NDArray[np.intp]) -> Planned:
        """Those of some of the cells, in the order of `rows`."""
        return Planned(
            self.first_day[rows],
            self.holidays[rows],
            self.event_load[rows],
            self.told_holidays[rows],
            self.told_events[rows],
        )

    def holiday_on(self, row: int, days: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which days of any shape, counted from 1970-01-01, are told holidays of one cell."""
        column = np.clip(days - self.first_day[row], 0, self.told_holidays.shape[1] - 1)
        return np.asarray(self.told_holidays[row, column], dtype=np.bool_)


def draw_planned(
    rng: np.random.Generator,
    regime: Regime,
    step_ms: int,
    start_ms: NDArray[np.int64],
    length: int,
    horizon: int = 0,
) -> Planned:
    """Holidays (three to forty a year) and events (rare to every third day) of each cell.

    Holidays are too rare to be learnt from at their own pace: of the cells that tell theirs, some
    have one within the horizon besides, and half of these another in the weeks before it.

    Args:
        rng: Source of randomness.
        regime: Only cells sampled by minutes to hours have events and a holiday besides.
        step_ms: Length of a sample.
        start_ms: (B,) start of the first sample.
        length: L, of which the last `horizon` are the future.
        horizon: H; by default nothing is forecast, and holidays come at their own pace.
    """
    cells = len(start_ms)
    first_day = start_ms // DAY_MS - DAYS_BEFORE
    days = int(length * step_ms // DAY_MS) + DAYS_BEFORE + 3
    keeps = chance(rng, _HOLIDAY_CELLS, cells)
    told = chance(rng, _KNOWN_SHARE, cells)
    rate = log_uniform(rng, 3 / 365, 40 / 365, (cells, 1)) * keeps[:, None]
    holidays = rng.random((cells, days)) < rate
    load = np.zeros((cells, length), dtype=np.float32)
    lasting = np.zeros((cells, length), dtype=np.float32)
    if regime in (Regime.HOUR, Regime.MINUTE):
        if horizon:
            soon = np.flatnonzero(keeps & told & chance(rng, _SOON_SHARE, cells))
            ahead_ms = step_ms * rng.uniform(length - horizon, length, len(soon))
            day = ((start_ms[soon] + ahead_ms) // DAY_MS).astype(np.int64) - first_day[soon]
            holidays[soon, day] = True
            shown = chance(rng, _SHOWN_SHARE, len(soon))
            before = day - rng.integers(1, _SHOWN_DAYS, len(soon), endpoint=True)
            holidays[soon[shown], np.maximum(before[shown], 0)] = True
        venues = np.flatnonzero(chance(rng, _EVENT_CELLS, cells))
        load[venues], lasting[venues] = _events(rng, step_ms, start_ms[venues], days, length)
    return Planned(first_day, holidays, load, holidays & told[:, None], lasting * told[:, None])


def _events(
    rng: np.random.Generator, step_ms: int, start_ms: NDArray[np.int64], days: int, length: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(V, L) load of V venues' events, and the share that they cover; at most one a day begins."""
    venues = len(start_ms)
    held = rng.random((venues, days)) < log_uniform(rng, 0.05, 0.4, (venues, 1))
    usual = rng.uniform(_FIRST_HOUR, _LAST_HOUR, (venues, 1))
    hour = usual + rng.normal(0.0, 0.7, (venues, days))
    begin_ms = np.arange(-DAYS_BEFORE, days - DAYS_BEFORE) * DAY_MS + hour * (DAY_MS / 24)  # (V, D)
    span_ms = rng.uniform(1.0, 5.0, (venues, 1)) * (DAY_MS / 24)
    strength = rng.uniform(0.5, 1.0, (venues, days)) * held
    phase_ms = (start_ms % DAY_MS)[:, None]
    middle_ms = phase_ms + step_ms * (np.arange(length) + 0.5)  # (V, L), since the first midnight
    day = np.clip(middle_ms // DAY_MS + DAYS_BEFORE, 0, days - 1).astype(np.intp)
    load = np.zeros((venues, length))
    lasting = np.zeros((venues, length))
    for back in (0, 1):  # an event may run past midnight
        column = np.maximum(day - back, 0)
        since = middle_ms - np.take_along_axis(begin_ms, column, axis=1)
        strong = np.take_along_axis(strength, column, axis=1)
        # People come early and leave late: half an hour of ramp lies outside the planned time.
        inside = np.minimum(since + DAY_MS / 48, span_ms + DAY_MS / 48 - since) / (DAY_MS / 24)
        load = np.maximum(load, strong * np.clip(inside, 0.0, 1.0))
        half_ms = step_ms / 2
        covered = np.minimum(since + half_ms, span_ms) - np.maximum(since - half_ms, 0.0)
        lasting += (strong > 0) * np.clip(covered / step_ms, 0.0, 1.0)
    return load.astype(np.float32), np.minimum(lasting, 1.0).astype(np.float32)
