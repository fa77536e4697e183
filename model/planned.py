"""What is known beforehand: public holidays of the cell's country and planned events.

A holiday runs on the local clock and is the same for every cell of a country; an event belongs to
one cell (a match, a concert, a maintenance). Both are inputs of past and future patches alike, so
that the model can see in the context what such days do to this cell. Below a minute nothing is
planned, and above a day nothing can be seen; there the inputs are zero.

What is planned of a patch is one row: the share of each sample that an event covers (P), whether it
lies in a holiday (P), whether the patch's ends one day and one week earlier did (4), and, where it
lies in a holiday, how many days back the last Sunday is (P). The last part is no input of a token
but tells where to look for days like this one.

Axis legend: N patches, P samples in a patch, W = 3 P + 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from kpi.window import PlannedEvent
from model.calendar import EPOCH_WEEKDAY, LONGEST_STEP_MS, SHORTEST_STEP_MS, utc_offset_ms
from model.holidays import are_holidays
from model.lags import DAY_MS

SUNDAY = 6
LAG_DAYS = (1, 7)
"""Holidays also count where the lags of a token lie: one day and one week before it."""


def planned_width(patch: int) -> int:
    """W of a patch of P samples."""
    return input_width(patch) + patch


def input_width(patch: int) -> int:
    """How many of the first numbers of a row are inputs of a token."""
    return 2 * patch + 2 * len(LAG_DAYS)


def planned_part(
    planned: Tensor, patch: int, part: Literal["event_share", "holiday", "sunday_days"]
) -> Tensor:
    """One part (..., P) of rows (..., W)."""
    first = {"event_share": 0, "holiday": patch, "sunday_days": input_width(patch)}[part]
    return planned[..., first : first + patch]


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
    """What is planned of a run of patches.

    Args:
        first_ms: Begin of the first patch in UTC milliseconds.
        patches: N.
        patch: P.
        step_ms: Length of a sample.
        time_zone: IANA name of the cell's clock.
        country: ISO 3166 code, with a subdivision as in `ES-CT`; None for no holidays.
        events: Planned events.

    Returns:
        (N, W), a row a patch.

    Raises:
        ModelError: The country is not known.
    """
    if not is_planned_step(step_ms) or (country is None and not events):
        return np.zeros((patches, planned_width(patch)), dtype=np.float32)
    begins_ms = first_ms + step_ms * np.arange(patches * patch)  # (N * P,)
    holidays = np.zeros((patches, planned_width(patch) - patch), dtype=np.float32)
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
    """What follows the event shares in a row, from the local days (N, P) of the samples.

    Returns:
        (N, 2 P + 4).
    """
    ends = days[:, [0, -1]]
    holiday = is_holiday(days)
    lagging = [is_holiday(ends - back) for back in LAG_DAYS]
    since_sunday = (days + EPOCH_WEEKDAY - SUNDAY) % 7
    sunday_days = np.where(holiday, np.where(since_sunday == 0, 7, since_sunday), 0)
    return np.concatenate([holiday, *lagging, sunday_days], axis=1).astype(np.float32)
