"""The local clock of instants in UTC, for whole arrays.

Axis legend: n instants.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

MS_PER_MINUTE = 60_000
MS_PER_HOUR = 60 * MS_PER_MINUTE
MS_PER_DAY = 24 * MS_PER_HOUR

# Every zone of today changes its offset on a full quarter of an hour of UTC.
_OFFSET_STEP_MS = 15 * MS_PER_MINUTE


@dataclass(frozen=True, slots=True)
class LocalTime:
    """Local clock of n instants.

    Attributes:
        day: int64 (n,), days since 1970-01-01 on the local calendar.
        hour: float64 (n,), hours of the local clock, 0 to under 24.
        weekday: int64 (n,), 0 is Monday.
    """

    day: NDArray[np.int64]
    hour: NDArray[np.float64]
    weekday: NDArray[np.int64]


def local_time(time_ms: NDArray[np.int64], zone: ZoneInfo) -> LocalTime:
    """The local calendar day and clock of instants (n,), milliseconds since 1970 in UTC."""
    steps, position = np.unique(time_ms // _OFFSET_STEP_MS, return_inverse=True)
    offsets_ms = np.fromiter(
        (utc_offset_ms(int(step) * _OFFSET_STEP_MS, zone) for step in steps),
        dtype=np.int64,
        count=len(steps),
    )
    day, in_day_ms = np.divmod(time_ms + offsets_ms[position], MS_PER_DAY)
    # 1970-01-01 was a Thursday.
    return LocalTime(day, in_day_ms / MS_PER_HOUR, (day + 3) % 7)


def utc_offset_ms(time_ms: int, zone: ZoneInfo) -> int:
    """How far the local clock is ahead of UTC at an instant."""
    offset = datetime.fromtimestamp(time_ms / 1000, zone).utcoffset()
    if offset is None:  # pragma: no cover - a ZoneInfo always knows its offset
        raise ValueError(f"time zone {zone.key} gives no offset at {time_ms} ms")
    return round(offset.total_seconds() * 1000)


def local_datetime(time_ms: int, zone: ZoneInfo) -> datetime:
    """An instant as an aware date on the local clock."""
    return datetime.fromtimestamp(time_ms / 1000, zone)
