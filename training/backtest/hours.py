"""Errors by hour of the local day: whether a forecaster is late for the morning or blind at night.

Axis legend: N forecasts, H steps, Q levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from model.lags import DAY_MS

MINUTE_MS = 60_000
HOUR_MS = 3_600_000
HOURS = 24
OFFSET_STEP_MS = 15 * MINUTE_MS
"""Clocks of all zones change at whole quarters of an hour."""


@dataclass(frozen=True)
class HourlyErrors:
    """Sums by local hour, each (24,), so that parts can be added up.

    Attributes:
        targets: Observed targets whose period begins in the hour.
        error: Sum of y - median: positive where forecasts were too low.
        absolute_error: Sum of |y - median|.
        absolute_target: Sum of |y|.
    """

    targets: NDArray[np.int64]
    error: NDArray[np.float64]
    absolute_error: NDArray[np.float64]
    absolute_target: NDArray[np.float64]

    def __add__(self, other: HourlyErrors) -> HourlyErrors:
        return HourlyErrors(
            self.targets + other.targets,
            self.error + other.error,
            self.absolute_error + other.absolute_error,
            self.absolute_target + other.absolute_target,
        )

    @property
    def bias(self) -> NDArray[np.float64]:
        """Mean of y - median by hour, in the KPI's unit; NaN where nothing was observed."""
        return _means(self.error, self.targets)

    @property
    def mean_absolute_error(self) -> NDArray[np.float64]:
        """Mean of |y - median| by hour, in the KPI's unit; NaN where nothing was observed."""
        return _means(self.absolute_error, self.targets)

    @property
    def mean_target(self) -> NDArray[np.float64]:
        """Mean of |y| by hour; NaN where nothing was observed."""
        return _means(self.absolute_target, self.targets)


def has_hours(step_ms: int) -> bool:
    """Whether an hour of the day says anything at this step: from a minute to less than a day."""
    return MINUTE_MS <= step_ms < DAY_MS


def local_times(starts_ms: Sequence[int], steps: int, step_ms: int, zone: str) -> NDArray[np.int64]:
    """What a clock on the wall shows when each step begins, as milliseconds since 1970-01-01.

    Args:
        starts_ms: N begins of first steps, UTC milliseconds.
        steps: H, how many steps follow each.
        step_ms: Length of a step.
        zone: IANA name of the cell's zone.

    Returns:
        (N, H).
    """
    begins = np.asarray(starts_ms, dtype=np.int64)[:, None] + step_ms * np.arange(steps)  # (N, H)
    quarters, place = np.unique(begins // OFFSET_STEP_MS, return_inverse=True)
    clock = ZoneInfo(zone)
    offsets = np.array(
        [_offset_ms(int(quarter) * OFFSET_STEP_MS, clock) for quarter in quarters], dtype=np.int64
    )
    local: NDArray[np.int64] = begins + offsets[place.reshape(begins.shape)]
    return local


def local_hours(starts_ms: Sequence[int], steps: int, step_ms: int, zone: str) -> NDArray[np.int64]:
    """Local hour, 0 to 23, of each step's begin (N, H); see `local_times`."""
    return local_times(starts_ms, steps, step_ms, zone) // HOUR_MS % HOURS


def hourly_errors(
    median: NDArray[np.floating], target: NDArray[np.floating], hours: NDArray[np.int64]
) -> HourlyErrors:
    """Sums by hour of forecasts (N, H) against targets (N, H); NaN in either does not count."""
    counted = ~np.isnan(target) & ~np.isnan(median)
    y = target[counted].astype(np.float64)
    error = y - median[counted].astype(np.float64)
    hour = hours[counted]
    return HourlyErrors(
        np.bincount(hour, minlength=HOURS),
        _sums(hour, error),
        _sums(hour, np.abs(error)),
        _sums(hour, np.abs(y)),
    )


def _sums(hour: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    sums: NDArray[np.float64] = np.bincount(hour, weights=values, minlength=HOURS).astype(float)
    return sums


def _offset_ms(at_ms: int, zone: ZoneInfo) -> int:
    offset = datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(zone).utcoffset()
    return 0 if offset is None else round(offset.total_seconds() * 1000)


def _means(sums: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
