"""Forecasts that wait for their observations, in bounded memory.

Two rings that turn together: one of records, one of quantiles. A new forecast takes the place of
the oldest ones, so memory never grows beyond what was reserved. A quantile that has met its
observation becomes NaN: what is left is what still waits, and a second observation of the same
period finds nothing.

Axis legend: n samples, m pairs of a sample and a forecast, R records, K KPIs, H steps of the
horizon, Q quantile levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from kpi.limits import NAME_CHARS
from model.predictor import Forecast

PATIENCE_STEPS = 96
"""How many steps a cell's data go on after the end of a forecast before it is given up: a day of
quarter-hours, so that files which arrive late or out of order still count."""

# Columns of the table; of Python: the key and its integers, the name, and a dictionary of its own
# where each record is of another cell (CPython 3.11 to 3.14, 64 bit).
_COLUMN_BYTES = 4 * 8 + 3 * 4 + 1
_PYTHON_BYTES = 560 + 49 + NAME_CHARS
_KPI_BYTES = 4
_VALUE_BYTES = 4
# A slice takes some 2 ms: less than the 5 ms for which a busy thread may hold the interpreter.
_MOST_PAIRS = 1 << 11
_MOST_SAMPLES = 1 << 8

Key = tuple[int, int, int]
"""Step in ms, number of the model, begin of the forecast in ms: one forecast of a cell each."""


class Fate(StrEnum):
    """Why a kept value was never scored."""

    EVICTED = "evicted"
    EXPIRED = "expired"
    REPLACED = "replaced"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Samples:
    """Observed values on the grid, none missing.

    Attributes:
        cells: Names of the cells; `cell_index` points into them.
        cell_index: (n,).
        kpi: (n,) number of the KPI, as the forecasts' KPIs are numbered.
        kind: (n,) number of the KPI's kind.
        end_ms: (n,) end of the period.
        step_ms: (n,) its length.
        values: (n,).
    """

    cells: Sequence[str]
    cell_index: NDArray[np.integer]
    kpi: NDArray[np.integer]
    kind: NDArray[np.integer]
    end_ms: NDArray[np.int64]
    step_ms: NDArray[np.int64]
    values: NDArray[np.floating]

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.values)


@dataclass(frozen=True, slots=True)
class Match:
    """Samples beside what was forecast for them, of one account.

    Attributes:
        account: Number of the account.
        sample: (m,) positions in the samples.
        steps: (m,) steps ahead, from 1.
        quantiles: float32 (m, Q).
    """

    account: int
    sample: NDArray[np.intp]
    steps: NDArray[np.int64]
    quantiles: NDArray[np.float32]


class KeptForecasts:
    """Forecasts by cell, step, model and begin; the newest of equal ones is kept.

    Not safe to use from several threads, but for `holds`.

    Args:
        most_bytes: Memory, of records and quantiles together.
        max_kpis: KPIs of one forecast, at most; larger ones are refused.
    """

    def __init__(self, most_bytes: int, max_kpis: int) -> None:
        # A forecast of four KPIs, a day of hours and three levels needs about as much for its
        # record as for its quantiles.
        self.record_bytes = _COLUMN_BYTES + _PYTHON_BYTES + _KPI_BYTES * max_kpis
        self.most_records = most_bytes // 2 // self.record_bytes
        self.most_values = most_bytes // 2 // _VALUE_BYTES
        self.lost = dict.fromkeys(Fate, 0)
        records = self.most_records
        self._values = np.empty(self.most_values, dtype=np.float32)
        self._begin_ms = np.empty(records, dtype=np.int64)
        self._step_ms = np.empty(records, dtype=np.int64)
        self._offset = np.empty(records, dtype=np.int64)  # of its (K, H, Q) in the values
        self._waiting = np.empty(records, dtype=np.int64)  # values of (K, H) not scored yet
        self._horizon = np.empty(records, dtype=np.int32)
        self._levels = np.empty(records, dtype=np.int32)
        self._account = np.empty(records, dtype=np.int32)
        self._live = np.zeros(records, dtype=np.bool_)
        self._kpis = np.empty((records, max_kpis), dtype=np.int32)  # -1 where there is none
        self._names: list[tuple[str, Key] | None] = [None] * records
        self._cells: dict[str, dict[Key, int]] = {}
        self._oldest = 0
        self._used = 0  # records from the oldest on, live or not
        self._head = 0  # where the next quantiles go

    def __len__(self) -> int:
        """Number of forecasts that wait."""
        return int(np.count_nonzero(self._live))

    @property
    def waiting_values(self) -> int:
        """Values (of one KPI at one step) that wait for their observation."""
        return int(self._waiting[self._live].sum())

    def holds(self, cell: str) -> bool:
        """Whether a forecast of this cell waits; may be asked from any thread."""
        return cell in self._cells

    def keep(
        self, forecast: Forecast, kpis: NDArray[np.integer], *, model: int, account: int
    ) -> bool:
        """Keep a forecast; the oldest ones make room, and one of the same key is replaced.

        Args:
            forecast: Values of which NaN are not waited for.
            kpis: (K,) numbers of its KPIs.
            model: Number of its model.
            account: Number of the account that its scores go to.

        Returns:
            Whether it is kept: False where it is too large, or says nothing.
        """
        values = forecast.values  # (K, H, Q)
        blank = np.isnan(values).any(axis=-1)  # (K, H)
        waiting = int(blank.size - np.count_nonzero(blank))
        too_large = values.size > self.most_values or len(kpis) > self._kpis.shape[1]
        if too_large or not self.most_records:
            self.lost[Fate.REFUSED] += waiting
            return False
        if not waiting:
            return False
        key = (forecast.step_ms, model, forecast.start_ms)
        known = self._cells.get(forecast.cell, {}).get(key)
        if known is not None:
            self._drop(known, Fate.REPLACED)
        offset = self._room(values.size)
        record = (self._oldest + self._used) % self.most_records
        self._used += 1
        self._head = offset + values.size
        block = self._values[offset : self._head].reshape(values.shape)
        block[:] = values
        block[blank] = np.nan
        self._begin_ms[record], self._step_ms[record] = forecast.start_ms, forecast.step_ms
        self._horizon[record], self._levels[record] = values.shape[1:]
        self._offset[record], self._account[record] = offset, account
        self._waiting[record], self._live[record] = waiting, True
        self._kpis[record, : len(kpis)] = kpis
        self._kpis[record, len(kpis) :] = -1
        self._names[record] = forecast.cell, key
        self._cells.setdefault(forecast.cell, {})[key] = record
        return True

    def take(self, samples: Samples, first: int) -> tuple[list[Match], int]:
        """Take what was forecast for some of the samples; it waits no longer.

        A forecast that its cell's data have left far behind is given up.

        Args:
            samples: No two of the same cell, KPI, step and period.
            first: Position of the first sample to look at.

        Returns:
            What was found, and the position to go on from: one call does a slice, so that others
            get their turn.
        """
        sample, record, end = self._pairs(samples, first)
        if not len(sample):
            return [], end
        step_ms = self._step_ms[record]
        same_step = samples.step_ms[sample] == step_ms
        steps = (samples.end_ms[sample] - self._begin_ms[record]) // step_ms
        horizon = self._horizon[record]
        past = np.unique(record[same_step & (steps > horizon + PATIENCE_STEPS)])
        of_kpi = self._kpis[record] == samples.kpi[sample][:, None]  # (m, most KPIs)
        found = np.flatnonzero(same_step & (steps >= 1) & (steps <= horizon) & of_kpi.any(axis=1))
        sample, record, steps = sample[found], record[found], steps[found]
        row = of_kpi[found].argmax(axis=1)
        levels = self._levels[record]
        place = self._offset[record] + (row * horizon[found] + steps - 1) * levels
        waits = np.flatnonzero(~np.isnan(self._values[place]))
        matches = [
            self._taken(account, sample, steps, place, record, waits)
            for account in np.unique(self._account[record[waits]]).tolist()
        ]
        met, counts = np.unique(record[waits], return_counts=True)
        self._waiting[met] -= counts
        for done in met[self._waiting[met] == 0].tolist():
            self._forget(done)
        for number in past[self._live[past]].tolist():
            self._drop(number, Fate.EXPIRED)
        self._trim()
        return matches, end

    def drop_account(self, account: int) -> None:
        """Give up all forecasts whose scores would go to this account."""
        for number in np.flatnonzero(self._live & (self._account == account)).tolist():
            self._drop(number, Fate.EVICTED)
        self._trim()

    def _pairs(
        self, samples: Samples, first: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], int]:
        """Every sample of a slice with every forecast of its cell: samples, records, end."""
        last = min(len(samples), first + _MOST_SAMPLES)
        cells, cell = np.unique(samples.cell_index[first:last], return_inverse=True)
        records = [list(self._cells.get(samples.cells[c], {}).values()) for c in cells.tolist()]
        size = np.array([len(each) for each in records], dtype=np.intp)
        reach = np.cumsum(size[cell])
        # At least one sample, or there would be no end.
        taken = max(1, int(np.searchsorted(reach, _MOST_PAIRS, side="right")))
        count = size[cell[:taken]]
        flat = np.array([number for each in records for number in each], dtype=np.intp)
        begin = (np.cumsum(size) - size)[cell[:taken]]
        sample = np.repeat(np.arange(taken), count)  # (m,)
        within = np.arange(len(sample)) - np.repeat(np.cumsum(count) - count, count)
        record = flat[begin[sample] + within] if len(sample) else flat[:0]
        return sample + first, record, first + taken

    def _taken(
        self,
        account: int,
        sample: NDArray[np.intp],
        steps: NDArray[np.int64],
        place: NDArray[np.int64],
        record: NDArray[np.intp],
        waits: NDArray[np.intp],
    ) -> Match:
        """Those of the waiting pairs that belong to an account; their quantiles become NaN."""
        own = waits[self._account[record[waits]] == account]
        levels = int(self._levels[record[own[0]]])
        places = place[own][:, None] + np.arange(levels)
        quantiles = self._values[places]
        self._values[places] = np.nan
        return Match(account, sample[own], steps[own], quantiles)

    def _room(self, size: int) -> int:
        """Where `size` values find room, made by giving up the oldest forecasts; a record too."""
        self._trim()
        while self._used == self.most_records:
            self._drop_oldest()
        begin = self._head if self._used else 0
        if begin + size > self.most_values:
            # The rest of the ring stays empty this time round.
            while self._used and self._offset[self._oldest] >= begin:
                self._drop_oldest()
            begin = 0
        while self._used and begin <= self._offset[self._oldest] < begin + size:
            self._drop_oldest()
        return begin

    def _drop_oldest(self) -> None:
        if self._live[self._oldest]:
            self._drop(self._oldest, Fate.EVICTED)
        self._oldest = (self._oldest + 1) % self.most_records
        self._used -= 1

    def _trim(self) -> None:
        """Free the oldest records of which nothing waits any more."""
        while self._used and not self._live[self._oldest]:
            self._oldest = (self._oldest + 1) % self.most_records
            self._used -= 1

    def _drop(self, record: int, fate: Fate) -> None:
        self.lost[fate] += int(self._waiting[record])
        self._forget(record)

    def _forget(self, record: int) -> None:
        named = self._names[record]
        assert named is not None
        cell, key = named
        of_cell = self._cells[cell]
        del of_cell[key]
        if not of_cell:
            del self._cells[cell]
        self._names[record] = None
        self._live[record] = False
