"""What one gNB reports in one file, before a dialect writes it down.

Axis legend: C cells of the gNB, K KPIs, n periods of the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from training.simulate.cell import Gnb
from training.simulate.local_time import local_datetime


@dataclass(frozen=True, slots=True)
class Report:
    """The content of one file.

    Attributes:
        gnb: Who reports.
        kpis: Names of the K measurements.
        first: Index of the first period of the file; its begin divided by `period_ms`.
        period_ms: Granularity period.
        periods: int64 (n,), indices of the reported periods, ascending; a lost one is left out.
        count: Number of periods that the file spans, lost ones included.
        values: float64 (C, K, n), NaN where no value is reported.
        omitted: bool (C, K, n), True where a missing value is left out instead of written as NIL.
        suspect: bool (C, n), the gNB's own doubt about a cell's values.
        clock_ms: How far the gNB's clock is ahead of the true time.
        zone: Zone of the time stamps.
        repeat: 1 for the first file of its periods, n for the n-th.
    """

    gnb: Gnb
    kpis: tuple[str, ...]
    first: int
    period_ms: int
    periods: NDArray[np.int64]
    count: int
    values: NDArray[np.float64]
    omitted: NDArray[np.bool_]
    suspect: NDArray[np.bool_]
    clock_ms: int
    zone: ZoneInfo
    repeat: int = 1

    @property
    def samples(self) -> int:
        """Number of values that the file has room for, missing ones included."""
        return self.values.size

    def begin(self) -> datetime:
        """When the file begins, local clock, without the clock's error."""
        return local_datetime(self.first * self.period_ms, self.zone)

    def end(self) -> datetime:
        """When the file ends, local clock, without the clock's error."""
        return local_datetime((self.first + self.count) * self.period_ms, self.zone)

    def stated(self, time_ms: int) -> datetime:
        """An instant as this gNB's clock states it."""
        return local_datetime(time_ms + self.clock_ms, self.zone)
