"""From a network and its faults to the reports that its gNBs make.

Axis legend: C cells of a gNB, K KPIs, n periods.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from training.simulate.cell import Gnb
from training.simulate.faults import Delivery, FaultPlan
from training.simulate.measurements import MEASUREMENTS
from training.simulate.network import NetworkSpec
from training.simulate.noise import FloatArray
from training.simulate.report import Report

# Values are computed in blocks, since one period costs nearly as much as a hundred. Blocks of large
# networks are shorter, which bounds what is remembered to about 100 MB.
_MOST_BLOCK_PERIODS = 96
_MOST_BLOCK_VALUES = 4_000_000
_BLOCKS_PER_GNB = 3


@dataclass(frozen=True)
class Reporter:
    """Makes reports; remembers blocks of values, which does not change them.

    Attributes:
        network: What is measured.
        plan: What goes wrong.
    """

    network: NetworkSpec
    plan: FaultPlan
    _blocks: OrderedDict[tuple[int, int], FloatArray] = field(
        default_factory=OrderedDict, repr=False, compare=False
    )

    @cached_property
    def block_periods(self) -> int:
        """Periods of a remembered block."""
        values = self.network.cells * len(self.network.kpis)
        return max(1, min(_MOST_BLOCK_PERIODS, _MOST_BLOCK_VALUES // values))

    def daily(self, gnb: Gnb, first: int, count: int) -> Report | None:
        """One report of `count` periods, or None where all of them are lost.

        Files that are late, doubled or corrected do not exist where one file holds many periods;
        lost periods, missing values, suspect results and wrong clocks do.
        """
        kept = np.flatnonzero(~self.plan.lost(gnb, first, count))
        if not len(kept):
            return None
        values = self.network.values(gnb.cells, first, count)[:, :, kept]
        return self._report(gnb, first, count, kept, values, repeat=1)

    def single(self, gnb: Gnb, delivery: Delivery) -> Report:
        """The report of one period that a delivery carries."""
        values = self._values(gnb, delivery.period)
        if delivery.is_wrong:
            values = np.zeros_like(values)
        kept = np.zeros(1, dtype=np.intp)
        return self._report(gnb, delivery.period, 1, kept, values, delivery.repeat)

    def _report(
        self,
        gnb: Gnb,
        first: int,
        count: int,
        kept: np.ndarray[tuple[int], np.dtype[np.intp]],
        values: FloatArray,
        repeat: int,
    ) -> Report:
        plan, kpis = self.plan, self.network.kpis
        missing = [plan.missing(cell, kpis, first, count) for cell in gnb.cells]
        doubt = [plan.suspect(cell, first, count) for cell in gnb.cells]
        gone = np.stack([mask for mask, _ in missing])[:, :, kept]  # (C, K, n)
        flagged = np.stack([mask for mask, _ in doubt])[:, kept]  # (C, n)
        share = np.stack([ratio for _, ratio in doubt])[:, None, kept]  # (C, 1, n)
        return Report(
            gnb=gnb,
            kpis=kpis,
            first=first,
            period_ms=self.network.period_ms,
            periods=first + kept.astype(np.int64),
            count=count,
            values=np.where(gone, np.nan, _cut_short(values, share, kpis)),
            omitted=np.stack([left_out for _, left_out in missing])[:, :, kept],
            suspect=flagged,
            clock_ms=plan.clock_ms(gnb, self.network.period_ms),
            zone=self.network.zone,
            repeat=repeat,
        )

    def _values(self, gnb: Gnb, period: int) -> FloatArray:
        """Values of one period, (C, K, 1)."""
        block, offset = divmod(period, self.block_periods)
        key = (gnb.index, block)
        if key not in self._blocks:
            self._blocks[key] = self.network.values(
                gnb.cells, block * self.block_periods, self.block_periods
            )
            while len(self._blocks) > _BLOCKS_PER_GNB * len(self.network.gnbs):
                self._blocks.popitem(last=False)
        return self._blocks[key][:, :, offset : offset + 1]


def _cut_short(values: FloatArray, share: FloatArray, kpis: tuple[str, ...]) -> FloatArray:
    """Values over a share of the period: amounts shrink with it, means stay; shapes (C, K, n)."""
    cut = values.copy()
    for k, name in enumerate(kpis):
        if MEASUREMENTS[name].additive:
            cut[:, k] = np.round(values[:, k] * share[:, 0], MEASUREMENTS[name].decimals)
    return cut
