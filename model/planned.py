"""What is known beforehand: public holidays of the cell's country and planned events.

A holiday runs on the local clock and is the same for every cell of a country; an event belongs to
one cell (a match, a concert, a maintenance). Both are inputs of past and future patches alike, so
that the model can see in the context what such days do to this cell. Below a minute nothing is
planned, and above a day nothing can be seen; there the inputs are zero.

Axis legend: N patches, P samples in a patch, W = 2 P + 4 planned inputs of a patch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from kpi.window import PlannedEvent
from model.calendar import LONGEST_STEP_MS, SHORTEST_STEP_MS, utc_offset_ms
from model.holidays import are_holidays
from model.lags import DAY_MS

LAG_DAYS = (1, 7)
"""Holidays also count where the lags of a token lie: one day and one week before it."""


def planned_width(patch: int) -> int:
    """Number of planned inputs W of a patch of P samples."""
    return 2 * patch + 2 * len(LAG_DAYS)


def is_planned_step(step_ms: int) -> bool:
    """Whether events and holidays are inputs at this sampling step."""
    return SHORTEST_STEP_MS <= step_ms <= LONGEST_STEP_MS


def planned_inputs(
    first_ms: int,
    patches: int,
    patch: int,
    step_ms: int,
    *,
    time_zone: str = "UTC",
    country: str | None = None,
    events: Sequence[PlannedEvent] = (),
) -> NDArray[np.float32]:
    """Planned inputs of a run of patches.

    Args:
        first_ms: Begin of the first patch in UTC milliseconds.
        patches: N.
        patch: P.
        step_ms: Length of a sample.
        time_zone: IANA name of the cell's clock.
        country: ISO 3166 code, with a subdivision as in `ES-CT`; None for no holidays.
        events: Planned events.

    Returns:
        (N, W): the share of each sample that an event covers, whether it lies in a holiday, and
        whether the patch's ends one day and one week earlier did.

    Raises:
        ModelError: The country is not known.
    """
    if not is_planned_step(step_ms) or (country is None and not events):
        return np.zeros((patches, planned_width(patch)), dtype=np.float32)
    begins_ms = first_ms + step_ms * np.arange(patches * patch)  # (N * P,)
    holidays = np.zeros((patches, patch + 2 * len(LAG_DAYS)), dtype=np.float32)
    if country is not None:
        code = country
        days = (begins_ms + utc_offset_ms(begins_ms, time_zone)) // DAY_MS
        holidays = holiday_inputs(days.reshape(patches, patch), lambda d: are_holidays(d, code))
    shares = event_shares(begins_ms, step_ms, events).reshape(patches, patch)
    return np.concatenate([shares, holidays], axis=1)


def event_shares(
    begins_ms: NDArray[np.int64], step_ms: int, events: Sequence[PlannedEvent]
) -> NDArray[np.float32]:
    """Share (n,) of each sample, by its begin (n,), that events cover, alone or together."""
    spans = [(event.start_ms, event.end_ms) for event in events if event.end_ms > event.start_ms]
    if not spans:
        return np.zeros(len(begins_ms), dtype=np.float32)
    starts, ends = np.array(sorted(spans), dtype=np.float64).T
    ends = np.maximum.accumulate(ends)
    apart = starts[1:] > ends[:-1]  # the others run on from the events before them
    starts, ends = starts[np.append(True, apart)], ends[np.append(apart, True)]
    edges = np.stack([starts, ends], axis=1)
    spent = np.cumsum(ends - starts)  # time under events up to each end
    before = np.stack([spent - (ends - starts), spent], axis=1)
    under_ms = np.interp([begins_ms, begins_ms + step_ms], edges.ravel(), before.ravel())
    return np.asarray((under_ms[1] - under_ms[0]) / step_ms, dtype=np.float32)


def holiday_inputs(
    days: NDArray[np.int64], is_holiday: Callable[[NDArray[np.int64]], NDArray[np.bool_]]
) -> NDArray[np.float32]:
    """Flags (N, P + 4) of the local days (N, P) of the samples, and of the ends' lags."""
    ends = days[:, [0, -1]]
    parts = [is_holiday(days), *(is_holiday(ends - back) for back in LAG_DAYS)]
    return np.concatenate(parts, axis=1).astype(np.float32)
