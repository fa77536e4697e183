"""What goes wrong between a cell and the reader of its files, each at a rate of its own.

Every fault is drawn from the seed, the element or cell, and the period: a run that is repeated or
continued meets the same faults, and a test can ask for them beforehand.

Axis legend: C cells, K KPIs, n periods.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from training.simulate.cell import Cell, Gnb
from training.simulate.errors import OptionError
from training.simulate.measurements import MEASUREMENTS, POSITION
from training.simulate.noise import FloatArray, Stream, uniforms

_LONGEST_DELAY_PERIODS = 96
# A clock that is wrong by more than half a period names another period, and nothing can mend that.
_CLOCK_ERROR_RATIO = 0.1
_CLOCK_ERROR_MS = 90_000


@dataclass(frozen=True, slots=True)
class FaultRates:
    """How often each fault happens, as a share from 0 to 1.

    Attributes:
        late: Files that arrive up to `late_periods` periods after they are due.
        duplicate: Files that arrive a second time, one period later, with a repeat count.
        missing_file: Periods of a gNB that are never reported.
        missing_counter: Values that are NIL or left out.
        suspect: Cells and periods with the suspect flag, measured over a part of the period.
        corrected: Files that are wrong (all zero, and not flagged), and sent again correctly.
        wrong_clock: gNBs whose time stamps are off the grid of periods, always by the same amount.
        late_periods: Longest delay of late and corrected files, in periods.
    """

    late: float = 0.0
    duplicate: float = 0.0
    missing_file: float = 0.0
    missing_counter: float = 0.0
    suspect: float = 0.0
    corrected: float = 0.0
    wrong_clock: float = 0.0
    late_periods: int = 4

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name != "late_periods" and not 0.0 <= value <= 1.0:
                raise OptionError(
                    f"fault rate {entry.name}: expected a share from 0 to 1, got {value}"
                )
        if not 1 <= self.late_periods <= _LONGEST_DELAY_PERIODS:
            raise OptionError(
                f"late_periods: expected 1 to {_LONGEST_DELAY_PERIODS} periods, got "
                f"{self.late_periods}"
            )

    @property
    def any_of_files(self) -> bool:
        """Whether any fault can happen to a file as a whole."""
        return bool(self.late or self.duplicate or self.missing_file or self.corrected)

    @property
    def longest_delay_periods(self) -> int:
        """How many periods after it is due the last file of a period may arrive."""
        return 2 * self.late_periods + 1


@dataclass(frozen=True, slots=True)
class Delivery:
    """One file on its way.

    Attributes:
        period: Index of the period that it reports.
        delay_periods: How many periods after it is due it arrives.
        repeat: 1 for the first file of the period, 2 for the second.
        is_wrong: It holds zeros where there was load.
    """

    period: int
    delay_periods: int = 0
    repeat: int = 1
    is_wrong: bool = False


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """The faults of one network.

    Attributes:
        seed: Seed of the network.
        rates: How often what happens.
    """

    seed: int
    rates: FaultRates

    def deliveries(self, gnb: Gnb, first: int, count: int) -> list[tuple[Delivery, ...]]:
        """The files of `count` consecutive periods of a gNB; none for a period that is lost."""
        drawn = uniforms(self.seed, Stream.FATE, gnb.index, first, count, 6)
        return [self._fate(first + i, [float(u) for u in row]) for i, row in enumerate(drawn)]

    def _fate(self, period: int, unit: list[float]) -> tuple[Delivery, ...]:
        rates = self.rates
        if unit[0] < rates.missing_file:
            return ()
        delay = 1 + int(unit[1] * rates.late_periods) if unit[2] < rates.late else 0
        if unit[3] < rates.corrected:
            again = delay + 1 + int(unit[4] * rates.late_periods)
            return (
                Delivery(period, delay, is_wrong=True),
                Delivery(period, again, repeat=2),
            )
        if unit[5] < rates.duplicate:
            return Delivery(period, delay), Delivery(period, delay + 1, repeat=2)
        return (Delivery(period, delay),)

    def due(self, gnb: Gnb, step: int, first: int) -> Iterator[Delivery]:
        """The files of a gNB that arrive when period `step` ends, oldest period first.

        Args:
            gnb: Whose files.
            step: Index of the period that has just ended.
            first: First period that is delivered in files of its own.
        """
        if not self.rates.any_of_files:
            yield Delivery(step)
            return
        oldest = max(first, step - self.rates.longest_delay_periods)
        for fates in self.deliveries(gnb, oldest, step - oldest + 1):
            for delivery in fates:
                if delivery.period + delivery.delay_periods == step:
                    yield delivery

    def lost(self, gnb: Gnb, first: int, count: int) -> NDArray[np.bool_]:
        """Which of `count` periods a gNB never reports, (n,)."""
        drawn = uniforms(self.seed, Stream.FATE, gnb.index, first, count, 6)
        never: NDArray[np.bool_] = drawn[:, 0] < self.rates.missing_file
        return never

    def missing(
        self, cell: Cell, kpis: tuple[str, ...], first: int, count: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which values of a cell are missing, and which of these are left out instead of NIL.

        Returns:
            Two masks (K, n), the second within the first.
        """
        if not self.rates.missing_counter:
            none = np.zeros((len(kpis), count), dtype=np.bool_)
            return none, none
        width = len(MEASUREMENTS)
        drawn = uniforms(self.seed, Stream.COUNTER_FAULT, cell.index, first, count, width).T
        unit = drawn[[POSITION[name] for name in kpis]]  # (K, n)
        rate = self.rates.missing_counter
        return unit < rate, unit < rate / 2

    def suspect(self, cell: Cell, first: int, count: int) -> tuple[NDArray[np.bool_], FloatArray]:
        """Which periods of a cell are suspect, and the share of a period that was measured.

        Returns:
            Mask (n,) and share (n,), which is 1 where nothing is suspect.
        """
        if not self.rates.suspect:
            return np.zeros(count, dtype=np.bool_), np.ones(count)
        drawn = uniforms(self.seed, Stream.CELL_FAULT, cell.index, first, count, 2)
        flagged = drawn[:, 0] < self.rates.suspect
        return flagged, np.where(flagged, 0.1 + 0.8 * drawn[:, 1], 1.0)

    def clock_ms(self, gnb: Gnb, period_ms: int) -> int:
        """How far a gNB's clock is ahead, whole seconds, at most a tenth of a period."""
        unit = uniforms(self.seed, Stream.CLOCK_FAULT, gnb.index, 0, 1, 2)[0]
        if unit[0] >= self.rates.wrong_clock:
            return 0
        most_ms = min(_CLOCK_ERROR_MS, int(_CLOCK_ERROR_RATIO * period_ms))
        seconds = max(1, int((0.2 + 0.8 * abs(2 * unit[1] - 1)) * most_ms) // 1000)
        return seconds * 1000 if unit[1] >= 0.5 else -seconds * 1000
