"""Calendar inputs: what the local clock says at the begin and end of each patch.

Time is UTC everywhere else. Human load follows the local clock, so daylight saving is honoured here
and nowhere else. Below a minute and above a day the clock says nothing, and the inputs are zero.

Axis legend: B windows, N patches, C = 14 calendar inputs (7 at the begin and 7 at the end of a
patch).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from model.lags import DAY_MS

CALENDAR_WIDTH = 14
SHORTEST_STEP_MS = 60_000
LONGEST_STEP_MS = DAY_MS
EPOCH_WEEKDAY = 3  # 1970-01-01 was a Thursday, counted from Monday = 0
FIRST_HOUR, LAST_HOUR = -17_259_864, 70_389_503
"""Hours since 1970 whose local time a date can hold in every zone: year 1 to 9999, less a day."""


def calendar_inputs(
    patch_start_ms: NDArray[np.int64], patch_ms: int, step_ms: int, time_zone: str
) -> NDArray[np.float32]:
    """Hour (two harmonics), weekday and weekend at both ends of each patch.

    Args:
        patch_start_ms: (N,) begin of each patch in UTC milliseconds.
        patch_ms: Length of a patch.
        step_ms: Length of a sample.
        time_zone: IANA name of the cell's clock.

    Returns:
        (N, 14), all zero where the step is under a minute or over a day.
    """
    if not SHORTEST_STEP_MS <= step_ms <= LONGEST_STEP_MS:
        return np.zeros((len(patch_start_ms), CALENDAR_WIDTH), dtype=np.float32)
    ends = np.stack([patch_start_ms, patch_start_ms + patch_ms], axis=1)  # (N, 2)
    local = ends + utc_offset_ms(ends.reshape(-1), time_zone).reshape(ends.shape)
    day_angle = 2 * np.pi * (local % DAY_MS) / DAY_MS
    weekday = (local // DAY_MS + EPOCH_WEEKDAY) % 7
    week_angle = 2 * np.pi * weekday / 7
    features = [
        np.sin(day_angle),
        np.cos(day_angle),
        np.sin(2 * day_angle),
        np.cos(2 * day_angle),
        np.sin(week_angle),
        np.cos(week_angle),
        (weekday >= 5).astype(np.float64),
    ]
    return np.stack(features, axis=-1).reshape(len(ends), CALENDAR_WIDTH).astype(np.float32)


def calendar_of_windows(
    origins: Sequence[tuple[int, str]], patches: tuple[int, int], patch_ms: int, step_ms: int
) -> NDArray[np.float32]:
    """Calendar inputs of the patches around each window's origin.

    Args:
        origins: B pairs of the origin in UTC milliseconds and the time zone.
        patches: First patch counted from the origin, and one past the last.
        patch_ms: Length of a patch.
        step_ms: Length of a sample.

    Returns:
        (B, N, 14).
    """
    offsets = patch_ms * np.arange(*patches)  # (N,)
    return np.stack(
        [calendar_inputs(origin + offsets, patch_ms, step_ms, zone) for origin, zone in origins]
    )


def utc_offset_ms(moments_ms: NDArray[np.int64], time_zone: str) -> NDArray[np.int64]:
    """Offset of the local clock from UTC at each moment (n,), daylight saving included."""
    if time_zone == "UTC":
        return np.zeros(len(moments_ms), dtype=np.int64)
    # A change inside an hour of UTC (half-hour zones only) shows from the next whole hour on.
    hours = moments_ms // 3_600_000
    distinct, index = np.unique(hours, return_inverse=True)
    offsets = [_offset_at_hour(int(hour), time_zone) for hour in distinct]
    return np.array(offsets, dtype=np.int64)[index]


@lru_cache(maxsize=65_536)
def _offset_at_hour(hour: int, time_zone: str) -> int:
    within = min(max(hour, FIRST_HOUR), LAST_HOUR)
    moment = datetime.fromtimestamp(within * 3600, UTC).astimezone(ZoneInfo(time_zone))
    offset = moment.utcoffset()
    return 0 if offset is None else int(offset.total_seconds() * 1000)
