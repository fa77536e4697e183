"""From names to rows: which row of which ring pool holds a KPI of a cell at a step.

A series is a cell at one granularity period. Tables of small integers lead from the number of a
cell to its series and from a series to the rows of its KPIs, so that a batch of any size is placed
by a few array operations and one dictionary look-up for each distinct name.

A batch is placed in two steps: `place` decides everything and changes nothing, `commit` makes it
so. Between the two the journal is written.

The KPIs of the catalogue have the first numbers, whether a cell reports them or not. So they use up
no names, come before the other KPIs of a batch where slots run short, and are told from those by
their number. Nothing is numbered that has no row; a replay of what was accepted, in whole or in
part and in any order, is therefore within every limit and is accepted again.

Axis legend: n samples, S steps of a cell, K KPI slots of a series.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kpi.catalogue import Catalogue
from kpi.errors import CatalogueError
from kpi.limits import MAX_KPI_NAMES, StoreLimits
from kpi.observation import ObservationBatch

FREE = -1
BLOCK = 1 << 18  # samples whose table rows are gathered at once

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(slots=True)
class Placement:
    """Where the samples of a batch belong, and what has to be made for that.

    Attributes:
        rows: int32 (n,), row within its pool, -1 for refused samples.
        cumulative: bool (n,), the row lies in the pool of running totals.
        refused: Mask of samples and reason, for each limit that was hit.
        new_cells: Names of cells to be added.
        refused_cells: How many cells the limit kept out.
        new_kpis: KPI names to be added.
        new_series: int64 (m, 3): cell, slot among its steps, period in ms.
        new_rows: int64 (m, 4): series, slot among its KPIs, KPI, row.
    """

    rows: NDArray[np.int32]
    cumulative: NDArray[np.bool_]
    refused: list[tuple[NDArray[np.bool_], str]] = field(default_factory=list)
    new_cells: list[str] = field(default_factory=list)
    refused_cells: int = 0
    new_kpis: list[str] = field(default_factory=list)
    new_series: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 3), np.int64))
    new_rows: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 4), np.int64))


class SeriesIndex:
    """Numbers of cells, KPIs, series and rows.

    Raises:
        CatalogueError: The catalogue has more KPIs than can be numbered.
    """

    def __init__(self, limits: StoreLimits, catalogue: Catalogue) -> None:
        if len(catalogue.kpis) > MAX_KPI_NAMES:
            raise CatalogueError(
                f"expected a catalogue of at most {MAX_KPI_NAMES} KPIs, got {len(catalogue.kpis)}"
            )
        self.cells: dict[str, int] = {}
        self.kpi_names: list[str] = list(catalogue.kpis)
        self.row_counts = [0, 0]  # of KPIs per period, of running totals
        self.series_count = 0
        self._limits = limits
        self._catalogue = catalogue
        self._known_kpis = len(catalogue.kpis)  # the first numbers are theirs
        self._kpis = {name: number for number, name in enumerate(catalogue.kpis)}
        self._cumulative = np.array(
            [entry.cumulative for entry in catalogue.kpis.values()], dtype=np.bool_
        )
        self._steps = np.empty((0, limits.max_steps_per_cell), dtype=np.int64)  # period, 0 free
        self._series = np.empty((0, limits.max_steps_per_cell), dtype=np.int32)
        self._slots = np.empty((0, limits.max_kpis_per_cell), dtype=np.uint16)  # KPI + 1, 0 free
        self._rows = np.empty((0, limits.max_kpis_per_cell), dtype=np.int32)

    def steps(self, cell: int) -> list[tuple[int, int]]:
        """Period in ms and series of each step of a cell, finest first."""
        periods = self._steps[cell].tolist()
        series = self._series[cell].tolist()
        return sorted((p, s) for p, s in zip(periods, series, strict=True) if p)

    def rows(self, series: int) -> list[tuple[str, int, bool]]:
        """KPI name, row and whether it is a running total, for each KPI of a series, by name."""
        slots = self._slots[series].tolist()
        rows = self._rows[series].tolist()
        return sorted(
            (self.kpi_names[kpi - 1], row, bool(self._cumulative[kpi - 1]))
            for kpi, row in zip(slots, rows, strict=True)
            if kpi
        )

    def place(self, batch: ObservationBatch) -> Placement:
        """Find or plan the row of each sample; refuse what is beyond the limits."""
        limits = self._limits
        placed = Placement(np.empty(0, np.int32), np.zeros(len(batch), np.bool_))
        names = self._catalogue.canonical_names(batch.kpis)
        # A cell without room for any unknown KPI must not come to be held because of one.
        most_names = limits.max_kpi_names if limits.max_unknown_kpis_per_cell else 0
        kpi = self._number(
            names, batch.kpi_index, self._kpis, self._known_kpis + most_names, placed.new_kpis
        )[batch.kpi_index]
        self._refuse(
            placed,
            kpi == FREE,
            lambda: (
                "a KPI that the catalogue does not know (add it there), with a name beyond "
                f"max_kpi_names={limits.max_kpi_names} new ones (none where max_kpis_per_cell is "
                "1), or one that is empty, not Unicode, or longer than "
                f"max_name_chars={limits.max_name_chars}"
            ),
        )
        local = np.where(kpi == FREE, FREE, batch.cell_index)
        numbers = self._number(
            batch.cells, local[local != FREE], self.cells, limits.max_cells, placed.new_cells
        )
        cell = np.where(kpi == FREE, FREE, numbers[batch.cell_index])
        kept_out = (cell == FREE) & (kpi != FREE)
        if kept_out.any():
            placed.refused_cells = len(np.unique(batch.cell_index[kept_out]))
        self._refuse(
            placed,
            kept_out,
            lambda: (
                f"{placed.refused_cells} new cells refused: the store holds "
                f"{len(self.cells) + len(placed.new_cells)} of max_cells={limits.max_cells} "
                "(raise it if there is memory), or their names are empty, not Unicode, or longer "
                f"than max_name_chars={limits.max_name_chars}"
            ),
        )
        series = self._place_series(placed, cell, batch.period_ms)
        self._place_rows(placed, series, kpi)
        self._drop_unused_names(placed)
        return placed

    def commit(self, placed: Placement) -> None:
        """Make what was planned; `placed` must be the latest placement."""
        for name in placed.new_kpis:
            self._kpis[name] = len(self.kpi_names)
            self.kpi_names.append(name)
        self._cumulative = self._with_cumulative(placed.new_kpis)
        for name in placed.new_cells:
            self.cells[name] = len(self.cells)
        cell, slot, period = placed.new_series.T
        self._steps[cell, slot] = period
        self._series[cell, slot] = self.series_count + np.arange(len(cell))
        self.series_count += len(cell)
        series, slot, kpi, row = placed.new_rows.T
        self._slots[series, slot] = kpi + 1
        self._rows[series, slot] = row
        totals = int(np.count_nonzero(self._cumulative[kpi]))
        self.row_counts[0] += len(kpi) - totals
        self.row_counts[1] += totals

    def _number(
        self,
        names: Sequence[str],
        used: NDArray[np.int32],
        known: dict[str, int],
        limit: int,
        new: list[str],
    ) -> NDArray[np.int32]:
        """Number of each name, int32 (names,), -1 for refused; `new` takes the names to add."""
        numbers = np.fromiter(map(known.get, names, repeat(FREE)), dtype=np.int32, count=len(names))
        in_use = np.zeros(len(names), dtype=np.bool_)
        in_use[used] = True
        planned: dict[str, int] = {}
        for position in np.flatnonzero((numbers == FREE) & in_use).tolist():
            name = names[position]
            number = planned.get(name, FREE)
            if number == FREE and len(known) + len(planned) < limit and self._is_name(name):
                number = planned[name] = len(known) + len(planned)
            numbers[position] = number
        new.extend(planned)
        return numbers

    def _is_name(self, name: str) -> bool:
        if not 0 < len(name) <= self._limits.max_name_chars:
            return False
        try:
            name.encode()
        except UnicodeEncodeError:  # half of a surrogate pair, which JSON can carry
            return False
        return True

    def _place_series(
        self, placed: Placement, cell: NDArray[np.int32], period_ms: NDArray[np.int64]
    ) -> NDArray[np.int32]:
        """Series of each sample, int32 (n,), -1 for refused."""
        cells = len(self.cells) + len(placed.new_cells)
        self._steps = _with_rows(self._steps, cells)
        self._series = _with_rows(self._series, cells)
        limit = self._limits.max_steps_per_cell
        series = _find(self._steps, self._series, cell, period_ms)
        missing = np.flatnonzero((series == FREE) & (cell != FREE))
        if not len(missing):
            return series
        pairs, pair = _distinct(cell[missing], period_ms[missing])
        slot = _next_slots(pairs[:, 0], self._steps)
        fits = slot < limit
        series[missing] = _numbered(fits, self.series_count)[pair]
        placed.new_series = np.column_stack((pairs[:, 0], slot, pairs[:, 1]))[fits]
        self._refuse(
            placed,
            (series == FREE) & (cell != FREE),
            lambda: (
                f"a granularity period beyond max_steps_per_cell={limit} different ones of "
                "the same cell"
            ),
        )
        return series

    def _place_rows(
        self, placed: Placement, series: NDArray[np.int32], kpi: NDArray[np.int32]
    ) -> None:
        """Set `placed.rows` and `placed.cumulative`."""
        count = self.series_count + len(placed.new_series)
        self._slots = _with_rows(self._slots, count)
        self._rows = _with_rows(self._rows, count)
        limit = self._limits.max_kpis_per_cell
        unknown_limit = self._limits.max_unknown_kpis_per_cell
        cumulative = self._with_cumulative(placed.new_kpis)
        placed.cumulative = cumulative[kpi] if len(cumulative) else placed.cumulative
        placed.rows = rows = _find(self._slots, self._rows, series, kpi + 1)
        missing = np.flatnonzero((rows == FREE) & (series != FREE))
        if not len(missing):
            return
        pairs, pair = _distinct(series[missing], kpi[missing])
        # Known KPIs of a series come first in the pairs, so what does not fit is at the end.
        slot = _next_slots(pairs[:, 0], self._slots)
        fits = slot < limit
        unknown = np.flatnonzero(pairs[:, 1] >= self._known_kpis)
        share = _next_slots(pairs[unknown, 0], self._slots, above=self._known_kpis)
        fits[unknown] &= share < unknown_limit
        total = cumulative[pairs[:, 1]]
        number = np.where(
            total,
            _numbered(fits & total, self.row_counts[1]),
            _numbered(fits & ~total, self.row_counts[0]),
        )
        rows[missing] = number[pair]
        placed.new_rows = np.column_stack((pairs[:, 0], slot, pairs[:, 1], number))[fits]
        refused = (rows == FREE) & (series != FREE)
        self._refuse(
            placed,
            refused & (kpi < self._known_kpis),
            lambda: (
                f"a KPI beyond max_kpis_per_cell={limit} (raise it if there is memory, or "
                "select KPIs at the source)"
            ),
        )
        self._refuse(
            placed,
            refused & (kpi >= self._known_kpis),
            lambda: (
                f"a KPI that the catalogue does not know: of max_kpis_per_cell={limit} such may "
                f"take at most {unknown_limit}, where those that it knows leave room (add it to "
                "the catalogue, select KPIs at the source, or raise the limit if there is memory)"
            ),
        )

    def _drop_unused_names(self, placed: Placement) -> None:
        """Number only those new KPIs that have a row."""
        first = len(self.kpi_names)
        kpi = placed.new_rows[:, 2]
        used = np.unique(kpi[kpi >= first])
        placed.new_rows[:, 2] = np.where(kpi < first, kpi, first + np.searchsorted(used, kpi))
        placed.new_kpis = [placed.new_kpis[number - first] for number in used.tolist()]

    def _with_cumulative(self, new_kpis: Iterable[str]) -> NDArray[np.bool_]:
        added = [self._catalogue.resolve(name).cumulative for name in new_kpis]
        return np.append(self._cumulative, np.array(added, dtype=np.bool_))

    def _refuse(
        self, placed: Placement, mask: NDArray[np.bool_], reason: Callable[[], str]
    ) -> None:
        if mask.any():
            placed.refused.append((mask, reason()))


def _with_rows(table: NDArray[Scalar], rows: int) -> NDArray[Scalar]:
    """The table with at least `rows` rows, new ones zero; grows by doubling."""
    if rows <= len(table):
        return table
    grown = np.zeros((max(rows, 2 * len(table)), table.shape[1]), dtype=table.dtype)
    grown[: len(table)] = table
    return grown


def _find(
    keys: NDArray[np.integer],
    numbers: NDArray[np.int32],
    group: NDArray[np.int32],
    wanted: NDArray[np.integer],
) -> NDArray[np.int32]:
    """Number beside `wanted` in row `group` of the keys, int32 (n,); -1 where it is not there."""
    found = np.full(len(group), FREE, dtype=np.int32)
    if not len(keys):
        return found
    for start in range(0, len(group), BLOCK):
        part = slice(start, start + BLOCK)
        # A group of -1 reads the last row and is masked afterwards.
        hit = keys[group[part]] == wanted[part, None]  # (block, slots)
        slot = hit.argmax(axis=1)
        there = hit[np.arange(len(slot)), slot] & (group[part] != FREE)
        found[part][there] = numbers[group[part][there], slot[there]]
    return found


def _distinct(
    group: NDArray[np.int32], member: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Distinct (group, member) pairs in order, int64 (m, 2), and each sample's pair, (n,)."""
    order = np.lexsort((member, group))
    pairs = np.column_stack((group[order], member[order])).astype(np.int64)
    is_first = np.append(True, (pairs[1:] != pairs[:-1]).any(axis=1))
    pair = np.empty(len(order), dtype=np.intp)
    pair[order] = np.cumsum(is_first) - 1
    return pairs[is_first], pair


def _next_slots(
    group: NDArray[np.int64], keys: NDArray[np.integer], above: int = 0
) -> NDArray[np.int64]:
    """Free slots for new members of ascending groups: taken ones, then one after the other.

    Only slots whose key is greater than `above` count as taken.
    """
    position = np.arange(len(group))
    starts = np.append(True, group[1:] != group[:-1])[: len(group)]
    rank = position - np.maximum.accumulate(np.where(starts, position, 0))
    taken = np.count_nonzero(keys[group] > above, axis=1)
    slots: NDArray[np.int64] = taken + rank
    return slots


def _numbered(fits: NDArray[np.bool_], start: int) -> NDArray[np.int32]:
    """Consecutive numbers from `start` where `fits`, else -1."""
    return np.where(fits, start + np.cumsum(fits) - 1, FREE).astype(np.int32)
