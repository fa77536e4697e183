"""The bounded store: the newest samples of every cell, in memory, with a journal behind it.

Merging is idempotent: the identity of a sample is (cell, KPI, period length, period end), and the
value of the latest arrival wins. A batch is first placed without changing anything, then written to
the journal, then to memory; if the journal fails, nothing has happened.

Memory follows from `StoreLimits` alone (`KpiStore.stated_bytes_per_cell`) and grows with the cells
that are in use. Each KPI of a cell keeps its own newest `history_steps` samples, so a sender with a
wrong clock spoils its own cell and no other.
"""

from __future__ import annotations

import logging
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kpi.admission import admit, rejection
from kpi.catalogue import Catalogue
from kpi.errors import JournalError, UnknownCellError
from kpi.grid import difference_counter, grid_end_ms, grid_index, period_end_ms
from kpi.limits import CellSummary, MergeResult, Rejection, StoreLimits
from kpi.observation import ObservationBatch
from kpi.ring import RingPool
from kpi.series import Placement, SeriesIndex
from kpi.window import KpiWindow, PlannedEvent

if TYPE_CHECKING:
    from kpi.journal import Journal

__all__ = ["CellSummary", "KpiStore", "MergeResult", "Rejection", "StoreLimits"]

WARNING_INTERVAL_SECONDS = 60.0

log = logging.getLogger(__name__)


class KpiStore:
    """Bounded samples of many cells. All methods may be called from any thread.

    One lock orders the merges, another guards the memory: a reader waits for a merge's array
    operations at most, never for the disk.

    Args:
        limits: Bounds of the store.
        catalogue: Says how KPIs are spelt, which are cumulative and what their limits are.
        journal: Where accepted samples are kept; it is replayed first. The store owns it from then
            on and closes it. Without one, a restart begins empty.
        clock: Monotonic seconds, to space out repeated warnings.
        wall_clock: Seconds since the epoch, to tell senders whose clock is ahead.

    Raises:
        JournalError: The journal cannot be replayed.
        CatalogueError: The catalogue has more KPIs than can be numbered.
    """

    def __init__(
        self,
        limits: StoreLimits,
        catalogue: Catalogue,
        journal: Journal | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.limits = limits
        self.refused_cells = 0
        self._catalogue = catalogue
        self._clock = clock
        self._wall_clock = wall_clock
        self._index = SeriesIndex(limits, catalogue)
        self._pools = (
            RingPool(limits.history_steps, np.float32),
            RingPool(limits.history_steps, np.float64),
        )
        self._newest_ms: int | None = None
        self._names: list[str] | None = []
        self._warned_at = -WARNING_INTERVAL_SECONDS
        self._merging = threading.Lock()
        self._memory = threading.Lock()
        self._journal: Journal | None = None
        if journal is not None:
            try:
                self._replay(journal)
            except JournalError:
                journal.close()
                raise
            self._journal = journal

    def __len__(self) -> int:
        """Number of cells."""
        return len(self._index.cells)

    @property
    def newest_ms(self) -> int | None:
        """Latest end of a stored sample; None while the store is empty."""
        return self._newest_ms

    @property
    def stored_bytes(self) -> int:
        """Memory of what is held now, by the formula of `stated_bytes_per_cell`."""
        rows, cumulative_rows = self._index.row_counts
        return self.limits.stated_bytes(
            cells=len(self),
            series=self._index.series_count,
            rows=rows,
            cumulative_rows=cumulative_rows,
        )

    def stated_bytes_per_cell(self, kpis: int) -> int:
        """Memory of a cell with so many KPIs at one step; see `StoreLimits`."""
        return self.limits.stated_bytes_per_cell(kpis)

    def merge(self, batch: ObservationBatch) -> MergeResult:
        """Take the samples of a batch that are within the limits, and say what became of all.

        Raises:
            JournalError: The journal could not be written; the store is as it was before.
        """
        with self._merging:
            result = self._merge(batch)
            if self._journal is not None and result.accepted:
                try:
                    capacity = sum(self._index.row_counts) * self.limits.history_steps
                    self._journal.maintain(capacity, self._needed)
                except JournalError as error:  # the batch itself is safe by now
                    log.error("journal_maintenance=failed error=%r", str(error))
        return result

    def window(
        self,
        cell: str,
        *,
        kpis: Sequence[str] | None = None,
        step_ms: int | None = None,
        time_zone: str = "UTC",
        events: Sequence[PlannedEvent] = (),
    ) -> KpiWindow:
        """The kept samples of a cell, up to its newest one.

        All KPIs end where the newest sample of the cell at that step ends. Leading samples that
        are missing from all of them are left off; at least the newest one stays. Cumulative KPIs
        are amounts for each period.

        Args:
            cell: Name of the cell.
            kpis: Which KPIs, in this order and in any spelling; by default all, ordered by name.
            step_ms: Granularity period; by default the finest at which the cell has a value.
            time_zone: IANA name handed on to the window.
            events: Planned events handed on to the window.

        Raises:
            UnknownCellError: The store does not hold the cell, the step or one of the KPIs.
        """
        with self._memory:
            step, names, values, start = self._view(cell, step_ms, kpis)
        return KpiWindow(
            cell=cell,
            kpis=names,
            start_ms=period_end_ms(start, step),
            step_ms=step,
            values=values,
            time_zone=time_zone,
            events=tuple(events),
        )

    def cells(self, after: str | None = None, limit: int = 100) -> list[CellSummary]:
        """Summaries of the next `limit` cells by name, one for each step of a cell.

        Args:
            after: Name of the last cell of the page before; the first page by default.
            limit: Number of cells (not of summaries, so that pages never part a cell).
        """
        with self._memory:
            if self._names is None:
                self._names = sorted(self._index.cells)
            start = 0 if after is None else bisect_right(self._names, after)
            page = self._names[start : start + limit]
        summaries = []
        for name in page:
            with self._memory:  # anew for each cell, so that a long page holds up no merge
                summaries += self._summaries(name)
        return summaries

    def cell(self, name: str) -> list[CellSummary]:
        """Summaries of one cell, one for each step, finest first.

        Raises:
            UnknownCellError: The store does not hold the cell.
        """
        with self._memory:
            return self._summaries(name)

    def close(self) -> None:
        """Close the journal. What was acknowledged is there already."""
        with self._merging:
            if self._journal is not None:
                self._journal.close()

    def _replay(self, journal: Journal) -> None:
        samples = refused = 0
        for batch in journal.replay():
            # A compacted batch has one arrival for samples of many, so no clock is checked.
            result = self._merge(batch, replayed=True)
            samples += result.accepted
            refused += sum(entry.count for entry in result.rejected)
        level = logging.WARNING if refused else logging.INFO
        log.log(level, "journal_replayed=%d refused=%d cells=%d", samples, refused, len(self))

    def _merge(self, batch: ObservationBatch, *, replayed: bool = False) -> MergeResult:
        now_ms = None if replayed else round(self._wall_clock() * 1000)
        index, accepted, rejected = admit(batch, self.limits, self._catalogue, now_ms=now_ms)
        batch, index = batch.take(accepted), index[accepted]
        placed = self._index.place(batch)
        rejected += [rejection(batch, mask, reason) for mask, reason in placed.refused]
        if placed.refused_cells:
            self._warn(placed)
        expired = self._expired(placed, index)
        kept = np.flatnonzero((placed.rows >= 0) & ~expired)
        if self._journal is not None and len(kept):
            self._journal.append(batch if len(kept) == len(batch) else batch.take(kept))
        stored = merged = 0
        dropped = late = int(np.count_nonzero(expired))
        with self._memory:
            self._commit(placed)
            values = batch.values
            if not self.limits.keep_suspect:
                values = np.where(batch.suspect, np.nan, values)
            for number, pool in enumerate(self._pools):
                at = kept[placed.cumulative[kept] == number]
                counts = pool.write(placed.rows[at], index[at], values[at])
                stored += counts.stored
                merged += counts.merged
                late += counts.late
                dropped += counts.expired
            if stored:
                newest = int(grid_end_ms(index[kept], batch.period_ms[kept]).max())
                self._newest_ms = max(newest, self._newest_ms or 0)
        return MergeResult(stored, merged, late, tuple(rejected), dropped)

    def _expired(self, placed: Placement, index: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Samples that are older than the history of a row that exists already."""
        expired = np.zeros(len(index), dtype=np.bool_)
        for number, pool in enumerate(self._pools):
            known = np.flatnonzero(
                (placed.cumulative == number) & (placed.rows >= 0) & (placed.rows < pool.rows)
            )
            oldest = pool.newest[placed.rows[known]] - self.limits.history_steps
            expired[known] = index[known] <= oldest
        return expired

    def _commit(self, placed: Placement) -> None:
        if placed.new_cells:
            self._names = None
        self._index.commit(placed)
        for pool, count in zip(self._pools, self._index.row_counts, strict=True):
            pool.reserve(count - pool.rows)
        self.refused_cells += placed.refused_cells

    def _warn(self, placed: Placement) -> None:
        now = self._clock()
        if now - self._warned_at >= WARNING_INTERVAL_SECONDS:
            self._warned_at = now
            log.warning(
                "new_cells_refused=%d cells=%d max_cells=%d",
                placed.refused_cells,
                len(self) + len(placed.new_cells),
                self.limits.max_cells,
            )

    def _steps(self, cell: str, step_ms: int | None) -> list[tuple[int, int]]:
        number = self._index.cells.get(cell)
        if number is None:
            raise UnknownCellError(
                f"the store holds no cell {cell!r}; it holds {len(self)} cells, and the name has "
                "to be spelt as the source spells it"
            )
        steps = self._index.steps(number)
        if step_ms is None:
            return steps
        chosen = [(step, series) for step, series in steps if step == step_ms]
        if not chosen:
            raise UnknownCellError(
                f"the store holds no samples of {cell!r} at a step of {step_ms} ms; it has "
                f"{[step for step, _ in steps]}"
            )
        return chosen

    def _view(
        self, cell: str, step_ms: int | None, kpis: Sequence[str] | None
    ) -> tuple[int, tuple[str, ...], NDArray[np.float32], int]:
        """Step, and what `_unrolled` gives, at the finest step that has the KPIs and a value."""
        without_value = []
        lacking: UnknownCellError | None = None
        for step, series in self._steps(cell, step_ms):
            try:
                names, values, start = self._unrolled(cell, series, kpis)
            except UnknownCellError as error:
                lacking = lacking or error
                continue
            if not _is_blank(values[:, 0]):
                return step, names, values, start
            without_value.append((step, names, values, start))
        if lacking and not without_value:
            raise lacking
        return without_value[0]

    def _unrolled(
        self, cell: str, series: int, kpis: Sequence[str] | None
    ) -> tuple[tuple[str, ...], NDArray[np.float32], int]:
        """KPIs (K), values (K, T), and the grid index of the period before sample 0."""
        rows = self._index.rows(series)
        end = self._end(rows)
        if kpis is not None:
            by_name = {row[0]: row for row in rows}
            try:
                rows = [by_name[self._catalogue.canonical(kpi)] for kpi in kpis]
            except KeyError as error:
                raise UnknownCellError(
                    f"the store holds no {error.args[0]} of {cell!r}; it has {list(by_name)}"
                ) from error
        history = self.limits.history_steps
        values = np.empty((len(rows), history), dtype=np.float32)
        for line, (_, row, total) in zip(values, rows, strict=True):
            if total:
                line[:] = self._amounts(row, end)
            else:
                self._pools[False].unroll(row, end, line)
        names = tuple(name for name, _, _ in rows)
        if _is_blank(values[:, 0]):
            known = ~np.isnan(values).all(axis=0)
            first = int(known.argmax()) if known.any() else history - 1
            values = values[:, first:].copy()
        return names, values, end - values.shape[1]

    def _summaries(self, name: str) -> list[CellSummary]:
        summaries = []
        for step, series in self._steps(name, None):
            rows = self._index.rows(series)
            end = self._end(rows)
            known = (self._first_known(row, total, end) for _, row, total in rows)
            first = min((index for index in known if index is not None), default=end)
            kpis = tuple(kpi for kpi, _, _ in rows)
            begin_ms, end_ms = period_end_ms(first - 1, step), period_end_ms(end, step)
            summaries.append(CellSummary(name, kpis, step, begin_ms, end_ms))
        return summaries

    def _end(self, rows: Sequence[tuple[str, int, bool]]) -> int:
        """Grid index of the newest sample of all rows of a series."""
        return max(self._pools[total].newest_of(row) for _, row, total in rows)

    def _first_known(self, row: int, is_total: bool, end: int) -> int | None:
        """Grid index of the oldest value that `_unrolled` gives of a row."""
        if not is_total:
            return self._pools[False].first_known(row, end)
        known = ~np.isnan(self._amounts(row, end))
        first = int(known.argmax())
        return end - self.limits.history_steps + 1 + first if known[first] else None

    def _amounts(self, row: int, end: int) -> NDArray[np.float64]:
        """Amounts of a running total in the history up to `end`, float64 (H,)."""
        readings = np.empty(self.limits.history_steps)
        self._pools[True].unroll(row, end, readings)
        return difference_counter(readings)

    def _needed(self, batch: ObservationBatch) -> NDArray[np.bool_]:
        """Samples that a replay needs: what memory holds, of equal ones the last."""
        index, on_grid = grid_index(
            batch.period_end_ms, batch.period_ms, self.limits.snap_tolerance_ratio
        )
        placed = self._index.place(batch)
        needed = np.zeros(len(batch), dtype=np.bool_)
        values = batch.values
        if not self.limits.keep_suspect:
            values = np.where(batch.suspect, np.nan, values)
        for number, pool in enumerate(self._pools):
            known = (placed.rows >= 0) & (placed.rows < pool.rows) & on_grid
            at = np.flatnonzero(known & (placed.cumulative == number))
            rows, wanted = placed.rows[at], index[at]
            live = wanted > pool.newest[rows] - self.limits.history_steps
            held = pool.read(rows, wanted)
            mine = values[at] if number else values[at].astype(np.float32)
            same = (held == mine) | (np.isnan(held) & np.isnan(mine))
            order = np.lexsort((wanted, rows))
            is_last = np.append((np.diff(rows[order]) != 0) | (np.diff(wanted[order]) != 0), True)
            last = np.zeros(len(at), dtype=np.bool_)
            last[order] = is_last[: len(at)]
            needed[at] = live & same & last
        return needed


def _is_blank(column: NDArray[np.float32]) -> bool:
    """Whether all are NaN; for a handful of values plain Python beats numpy."""
    return all(value != value for value in column.tolist())
