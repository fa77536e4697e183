"""A simulated network: deterministic, so that anybody can ask it for the truth of any period.

Axis legend: C cells, K KPIs, n periods. Period i covers [i * period_ms, (i + 1) * period_ms), in
milliseconds since 1970 in UTC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from training.simulate.cell import Cell, Gnb, draw_gnbs
from training.simulate.load import Instants
from training.simulate.local_time import local_time
from training.simulate.measurements import MEASUREMENTS, POSITION
from training.simulate.noise import FloatArray
from training.simulate.profiles import PROFILES
from training.simulate.radio import measure


@dataclass(frozen=True)
class NetworkSpec:
    """All that a network's numbers depend on.

    Attributes:
        cells: Number of cells C.
        seed: Seed; two networks of one spec are equal.
        cells_per_gnb: Cells of one gNB; the last gNB may have fewer.
        period_ms: Granularity period.
        time_zone: IANA name of the zone whose clock the users follow.
        kpis: Measurements that are reported, in this order.
        profiles: Classes that cells are drawn from; all by default.
    """

    cells: int
    seed: int = 1
    cells_per_gnb: int = 3
    period_ms: int = 900_000
    time_zone: str = "UTC"
    kpis: tuple[str, ...] = tuple(MEASUREMENTS)
    profiles: tuple[str, ...] = tuple(PROFILES)

    @cached_property
    def zone(self) -> ZoneInfo:
        """The time zone."""
        return ZoneInfo(self.time_zone)

    @cached_property
    def gnbs(self) -> tuple[Gnb, ...]:
        """The gNBs with their cells."""
        profiles = [PROFILES[name] for name in self.profiles]
        return draw_gnbs(self.seed, self.cells, self.cells_per_gnb, profiles)

    def values(self, cells: Sequence[Cell], first: int, count: int) -> FloatArray:
        """The true measurements of `count` periods, without any fault of a reporting chain.

        Returns:
            (C, K, n), never NaN; the numbers of a period do not depend on `first` and `count`.
        """
        instants = self._instants(first, count)
        rows = [POSITION[name] for name in self.kpis]
        measured = [measure(self.seed, cell, instants, self.period_ms)[rows] for cell in cells]
        return np.stack(measured) if measured else np.empty((0, len(rows), count))

    def _instants(self, first: int, count: int) -> Instants:
        middle_ms: NDArray[np.int64] = (
            np.arange(first, first + count, dtype=np.int64) * self.period_ms + self.period_ms // 2
        )
        return Instants(first, middle_ms, local_time(middle_ms, self.zone))
