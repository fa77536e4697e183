"""Rows of samples as rings: the bounded memory under the store.

Every row holds the newest `history_steps` samples of one KPI of one cell at one step. The sample of
grid period i lies at slot i mod history, and each row knows the index of its own newest sample, so
a source with a wrong clock spoils nobody's row but its own. Rows live in slabs that are never
moved or copied; memory grows with the rows that are in use.

Axis legend: n samples of a write, R rows of a slab, H history steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

NEVER = -(1 << 62)  # newest index of a row without samples; far from overflow when H is taken off
# Above the largest size that the C library's allocator would take from its heap, so that a slab
# is mapped memory, of which only the rows in use are resident.
SLAB_BYTES = 33 << 20
CLEARED_AT_ONCE = 1 << 20


class WriteCounts(NamedTuple):
    """Samples of one write: stored, of those replacing, older than the newest, dropped."""

    stored: int
    merged: int
    late: int
    expired: int


class RingPool:
    """Rows of one data type.

    Args:
        history_steps: H, samples in each row.
        dtype: float32, or float64 for running totals.
    """

    def __init__(self, history_steps: int, dtype: type[np.float32 | np.float64]) -> None:
        self.rows = 0
        self._history = history_steps
        self._dtype = np.dtype(dtype)
        wanted = -(-SLAB_BYTES // (history_steps * self._dtype.itemsize))
        self._shift = (wanted - 1).bit_length()
        self._slabs: list[NDArray[np.float32 | np.float64]] = []  # each (R, H)
        self._newest = np.empty(0, dtype=np.int64)

    @property
    def newest(self) -> NDArray[np.int64]:
        """Index of the newest sample of each row, int64 (rows,); NEVER for a row without any."""
        return self._newest[: self.rows]

    def newest_of(self, row: int) -> int:
        """Index of the newest sample of one row."""
        return int(self._newest[row])

    def reserve(self, count: int) -> None:
        """Add `count` rows without samples after the last row."""
        start, end = self.rows, self.rows + count
        if end > len(self._newest):
            grown = np.empty(max(end, 2 * len(self._newest)), dtype=np.int64)
            grown[:start] = self.newest
            self._newest = grown
        slab_rows = 1 << self._shift
        while len(self._slabs) * slab_rows < end:
            self._slabs.append(np.empty((slab_rows, self._history), dtype=self._dtype))
        for number in range(start >> self._shift, len(self._slabs)):
            low = max(start - (number << self._shift), 0)
            high = min(end - (number << self._shift), slab_rows)
            self._slabs[number][low:high] = np.nan
        self._newest[start:end] = NEVER
        self.rows = end

    def write(
        self, rows: NDArray[np.int32], index: NDArray[np.int64], values: NDArray[np.float64]
    ) -> WriteCounts:
        """Store samples; of those with equal row and index the last one wins.

        Args:
            rows: int32 (n,), below `rows`.
            index: int64 (n,), grid index of each sample.
            values: float64 (n,), NaN for missing.
        """
        if len(rows) > 1 and not bool((rows[1:] > rows[:-1]).all()):
            order = np.lexsort((index, rows))  # stable, so the last arrival stays last
            rows, index, values = rows[order], index[order], values[order]
        before = self._newest[rows]
        last_of_row = np.append(rows[1:] != rows[:-1], True)[: len(rows)]
        self._advance(rows[last_of_row], index[last_of_row])
        live = index > self._newest[rows] - self._history
        keep = live.copy()
        keep[:-1] &= last_of_row[:-1] | (index[1:] != index[:-1])
        held = (index <= before) & (index > before - self._history)
        stored = int(np.count_nonzero(live))
        merged = stored - int(np.count_nonzero(keep))
        late = int(np.count_nonzero(index < before))
        rows, index, values, held = rows[keep], index[keep], values[keep], held[keep]
        for slab, part, at in self._places(rows, index):
            merged += int(np.count_nonzero(held[part] & ~np.isnan(slab[at])))
            slab[at] = values[part]
        return WriteCounts(stored, merged, late, expired=len(live) - stored)

    def read(self, rows: NDArray[np.int32], index: NDArray[np.int64]) -> NDArray[np.float64]:
        """Samples at (row, index), float64 (n,); NaN where the rings do not hold them."""
        found = np.full(len(rows), np.nan)
        newest = self._newest[rows]
        held = np.flatnonzero((index <= newest) & (index > newest - self._history))
        held = held[np.argsort(rows[held], kind="stable")]
        for slab, part, at in self._places(rows[held], index[held]):
            found[held[part]] = slab[at]
        return found

    def unroll(
        self, row: int, end_index: int, out: NDArray[np.float32] | NDArray[np.float64]
    ) -> None:
        """Copy a row in order of time.

        Args:
            row: Which row.
            end_index: Grid index of the last entry of `out`, not before the row's newest.
            out: (H,), overwritten; NaN after the row's newest sample.
        """
        history = self._history
        ring = self._slabs[row >> self._shift][row & ((1 << self._shift) - 1)]
        newest = int(self._newest[row])
        behind = end_index - newest
        if behind >= history:
            out[:] = np.nan
            return
        known = history - behind
        head = newest % history + 1
        from_tail = known - head  # how many of them lie before the wrap
        if from_tail > 0:
            out[:from_tail] = ring[history - from_tail :]
            out[from_tail:known] = ring[:head]
        else:
            out[:known] = ring[head - known : head]
        out[known:] = np.nan

    def first_known(self, row: int, end_index: int) -> int | None:
        """Grid index of the oldest sample with a value among the H that end at `end_index`.

        Args:
            row: Which row.
            end_index: Grid index, not before the row's newest.

        Returns:
            None where none of them has a value.
        """
        oldest = end_index - self._history + 1
        newest = int(self._newest[row])
        if newest < oldest:
            return None
        ring = self._slabs[row >> self._shift][row & ((1 << self._shift) - 1)]
        tail, head = oldest % self._history, newest % self._history + 1
        if ring[tail] == ring[tail]:  # as it is in a row that has been filled for long
            return oldest
        present = ring == ring
        for part, index in (
            ((present[tail:head], oldest),)
            if tail < head
            else ((present[tail:], oldest), (present[:head], oldest + self._history - tail))
        ):
            first = int(part.argmax())
            if part[first]:
                return index + first
        return None

    def _advance(self, rows: NDArray[np.int32], index: NDArray[np.int64]) -> None:
        """Make `index` the newest of each row (rows differ), clearing the slots it passes over."""
        before = self._newest[rows]
        ahead = index > before
        rows, index, before = rows[ahead], index[ahead], before[ahead]
        self._newest[rows] = index
        # A row without samples is clear already.
        skipped = np.where(before == NEVER, 0, np.minimum(index - before, self._history))
        gaps = np.flatnonzero(skipped > 1)  # at 1 the sample itself overwrites the slot
        rows, index, skipped = rows[gaps], index[gaps], skipped[gaps]
        ends = np.cumsum(skipped)
        start = 0
        while start < len(rows):
            done = ends[start - 1] if start else 0
            stop = max(int(np.searchsorted(ends, done + CLEARED_AT_ONCE, "right")), start + 1)
            counts = skipped[start:stop]
            begins = ends[start:stop] - counts - done
            offset = np.arange(int(counts.sum())) - np.repeat(begins, counts)
            passed = np.repeat(index[start:stop], counts) - offset
            for slab, _, at in self._places(np.repeat(rows[start:stop], counts), passed):
                slab[at] = np.nan
            start = stop

    def _places(
        self, rows: NDArray[np.int32], index: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.float32 | np.float64], slice, NDArray[np.int64]]]:
        """Flat slab, the part of the samples that lies in it, and where; rows are ascending."""
        slab_of = rows >> self._shift
        inside = (rows & ((1 << self._shift) - 1)).astype(np.int64)
        at = inside * self._history + index % self._history
        starts = np.flatnonzero(np.diff(slab_of, prepend=-1)).tolist()
        for start, stop in zip(starts, [*starts[1:], len(rows)], strict=False):
            yield self._slabs[int(slab_of[start])].reshape(-1), slice(start, stop), at[start:stop]
