"""Local wall time of tables to UTC, through both clock changes.

In autumn an hour comes twice: of each series the first pass is taken as summer time and, once its
stamps go back or repeat, the second as winter time. Where they never go back but several repeat,
the table was sorted by local time, and of equal stamps the latter is of the second pass. In spring
an hour is skipped: stamps inside it are moved on by the change.

Axis legend: n rows.
"""

from __future__ import annotations

from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from kpi.readers.times import offset_seconds

_MINUTE_MS = 60_000
_HALF_DAY_MS = 12 * 3_600_000


def to_utc(
    wall_ms: NDArray[np.int64], series: NDArray[np.int64], zone: ZoneInfo
) -> NDArray[np.int64]:
    """UTC milliseconds of wall times.

    Args:
        wall_ms: Wall time as milliseconds since 1970-01-01T00:00 local (n,).
        series: Number of the series that each row belongs to (n,); within a series the order of
            rows tells the two passes of a repeated hour apart, upwards or downwards.
        zone: The zone of the wall times.
    """
    minutes, place = np.unique(wall_ms // _MINUTE_MS, return_inverse=True)
    seconds = (minutes * 60).tolist()
    first = np.array([offset_seconds(second, zone) for second in seconds], dtype=np.int64)
    second = np.array([offset_seconds(second, zone, 1) for second in seconds], dtype=np.int64)
    offsets = first[place]
    repeated = np.flatnonzero((first > second)[place])
    if len(repeated):
        later = repeated[_second_pass(wall_ms, series, repeated)]
        offsets[later] = second[place[later]]
    return wall_ms - 1000 * offsets


def _second_pass(
    wall_ms: NDArray[np.int64], series: NDArray[np.int64], rows: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Whether each of `rows`, all within repeated hours, belongs to the second pass."""
    names, first = np.unique(series, return_index=True)
    last = len(series) - 1 - np.unique(series[::-1], return_index=True)[1]
    falls = wall_ms[first] > wall_ms[last]
    of_row = np.searchsorted(names, series[rows])
    in_time_order = np.where(falls[of_row], -rows, rows)
    order = np.lexsort((in_time_order, of_row))
    is_apart = np.abs(np.diff(wall_ms[rows[order]])) > _HALF_DAY_MS
    is_apart |= np.diff(of_row[order]) != 0
    result = np.zeros(len(rows), dtype=np.bool_)
    for night in np.split(order, np.flatnonzero(is_apart) + 1):
        result[night] = _folded(wall_ms[rows[night]])
    return result


def _folded(stamps_ms: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which stamps of one series and night, (m,) in order of time, are of the second pass."""
    steps = np.diff(stamps_ms)
    repeats = steps == 0
    if (steps >= 0).all() and np.count_nonzero(repeats) > 1:
        return np.append(False, repeats)  # sorted by the clock on the wall
    return np.append(False, np.logical_or.accumulate(steps <= 0))
