"""The common end of all readers of PM files: results as text in, observation batches out.

A reader adds one measured object's results at a time; numbers, list counters, KPI names and derived
KPIs are worked out in bulk over the whole file, so that no Python object is made for a number. A
file is read as a whole or not at all: batches come out only at the end.

Axis legend: o objects (one `add` each), s results, n samples, k KPIs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from kpi.catalogue import Catalogue
from kpi.errors import UnreadableFileError
from kpi.observation import ObservationBatch
from kpi.readers.derive import derive
from kpi.readers.options import ReadOptions
from kpi.readers.values import parse_results

_PENDING_RESULTS = 1 << 19


class Samples:
    """Collects the results of one file and turns them into batches.

    Args:
        name: The file, for errors and warnings.
        options: How list counters are treated, the limits, where warnings go.
        catalogue: Gives counters their canonical names and the derived KPIs.
        arrival_ms: When the file became available.
    """

    def __init__(
        self, name: object, options: ReadOptions, catalogue: Catalogue, arrival_ms: int
    ) -> None:
        self._name = name
        self._options = options
        self._catalogue = catalogue
        self._arrival_ms = arrival_ms
        self._cells: dict[str, int] = {}
        self._kpis: dict[str, int] = {}
        self._texts: list[str] = []
        self._text_kpis: list[int] = []
        self._objects: list[tuple[int, int, int, int, bool]] = []
        self._parts: list[_Part] = []
        self._size = 0
        self._junk = 0
        self._infinite = 0

    def counters(self, names: Iterable[str]) -> list[int]:
        """Numbers of counters, for `add`; spellings of one KPI have the same number."""
        kpis = self._kpis
        canonical = self._catalogue.canonical_names(map(str.strip, names))
        return [kpis.setdefault(name, len(kpis)) for name in canonical]

    def add(
        self,
        cell: str,
        counters: Sequence[int],
        texts: Sequence[str],
        period_end_ms: int,
        period_ms: int,
        suspect: bool,
    ) -> None:
        """Take the results of one object and period.

        Args:
            cell: Name of the object.
            counters: Numbers from `counters`, one a result.
            texts: Results as the source writes them.
            period_end_ms: End of the period.
            period_ms: Its length.
            suspect: The source's doubt.

        Raises:
            UnreadableFileError: The file has more samples than the limit.
        """
        if not texts:
            return
        index = self._cells.setdefault(cell, len(self._cells))
        self._objects.append((index, len(texts), period_end_ms, period_ms, suspect))
        self._texts += texts
        self._text_kpis += counters
        if len(self._texts) >= _PENDING_RESULTS:
            self._flush()

    def batches(self) -> Iterator[ObservationBatch]:
        """All samples, in batches of at most `limits.batch_samples`.

        Raises:
            UnreadableFileError: The file has more samples than the limit.
        """
        self._flush()
        if self._junk:
            self._options.warn("results_not_numeric", file=self._name, count=self._junk)
        if self._infinite:
            self._options.warn("results_infinite", file=self._name, count=self._infinite)
        if not self._parts:
            self._options.warn("no_measurements", file=self._name)
            return iter(())
        return split(self._whole(), self._options.limits.batch_samples)

    def _flush(self) -> None:
        """Turn the texts so far into a part of columns."""
        if not self._texts:
            return
        limit = self._options.limits.max_samples
        try:
            numbers = parse_results(self._texts, limit - self._size)
        except ValueError as error:
            raise UnreadableFileError(
                self._name, f"expected at most {limit} samples, got more; split the file"
            ) from error
        self._junk += numbers.junk
        self._infinite += numbers.infinite
        part = _Part(
            objects=np.array(self._objects, dtype=np.int64),
            kpi=np.array(self._text_kpis, dtype=np.int32),
            lengths=numbers.lengths,
            values=numbers.values,
        )
        self._parts.append(part.scalars() if self._options.vectors == "skip" else part)
        self._size += len(numbers.values)
        self._texts, self._text_kpis, self._objects = [], [], []

    def _whole(self) -> ObservationBatch:
        """All parts as one batch, derived KPIs included."""
        part = self._parts[0] if len(self._parts) == 1 else _Part.concatenate(self._parts)
        kpis, kpi = self._kpis, part.kpi
        is_list = part.lengths > 1
        plain = np.zeros(len(kpis), dtype=np.bool_)  # (k,), has a value outside of lists
        plain[kpi[~is_list]] = True
        longest = np.zeros(len(kpis), dtype=np.int64)  # (k,)
        np.maximum.at(longest, kpi[is_list], part.lengths[is_list])
        # The batch's KPIs are those with plain values, then every position of the longest lists.
        places = np.cumsum(plain) - 1
        offsets = np.count_nonzero(plain) + np.cumsum(longest) - longest
        starts = np.where(is_list, offsets[kpi], places[kpi])  # (s,)
        widths = longest.tolist()
        suffixes = [f"[{index}]" for index in range(max(widths))]
        listed = [
            name + suffix
            for name, width in compress(zip(kpis, widths, strict=True), widths)
            for suffix in suffixes[:width]
        ]
        cell, _, period_end_ms, period_ms, suspect = part.objects.T
        sizes = part.sizes()  # (o,)
        batch = ObservationBatch(
            cells=tuple(self._cells),
            kpis=(*compress(kpis, plain.tolist()), *listed),
            cell_index=np.repeat(cell.astype(np.int32), sizes),
            kpi_index=part.counted_from(starts.astype(np.int32)),
            period_end_ms=np.repeat(period_end_ms, sizes),
            period_ms=np.repeat(period_ms, sizes),
            values=part.values,
            suspect=np.repeat(suspect.astype(np.bool_), sizes),
            arrival_ms=self._arrival_ms,
        )
        return derive(
            batch,
            self._catalogue,
            lambda name: int(places[kpis[name]]) if name in kpis and plain[kpis[name]] else None,
        )


@dataclass(frozen=True, slots=True)
class _Part:
    """Columns of n samples, s results and o objects before they have names.

    Attributes:
        objects: int64 (o, 5): cell, number of results, period end, period, suspect.
        kpi: int32 (s,).
        lengths: int64 (s,), how many samples each result has, over 1 for lists.
        values: float64 (n,).
    """

    objects: NDArray[np.int64]
    kpi: NDArray[np.int32]
    lengths: NDArray[np.int64]
    values: NDArray[np.float64]

    @staticmethod
    def concatenate(parts: Sequence[_Part]) -> _Part:
        """One part after the other."""
        return _Part(
            objects=np.concatenate([part.objects for part in parts]),
            kpi=np.concatenate([part.kpi for part in parts]),
            lengths=np.concatenate([part.lengths for part in parts]),
            values=np.concatenate([part.values for part in parts]),
        )

    def scalars(self) -> _Part:
        """The results that are no lists."""
        keep = self.lengths == 1  # (s,)
        objects = self.objects.copy()
        objects[:, 1] = self._by_object(keep)
        return _Part(
            objects=objects[objects[:, 1] > 0],
            kpi=self.kpi[keep],
            lengths=self.lengths[keep],
            values=self.values[np.repeat(keep, self.lengths)],
        )

    def sizes(self) -> NDArray[np.int64]:
        """How many samples each object has, int64 (o,)."""
        return self._by_object(self.lengths)

    def counted_from(self, starts: NDArray[np.int32]) -> NDArray[np.int32]:
        """Upward from the start of each result, int32 (s,), a number a sample: int32 (n,)."""
        first = np.cumsum(self.lengths, dtype=np.int32) - self.lengths.astype(np.int32)  # (s,)
        counted: NDArray[np.int32] = np.arange(len(self.values), dtype=np.int32)
        counted += np.repeat(starts - first, self.lengths)
        return counted

    def _by_object(self, column: NDArray[np.int64] | NDArray[np.bool_]) -> NDArray[np.int64]:
        """Sums over the results (s,) of each object (o,)."""
        results = self.objects[:, 1]
        # An object without results would take those of the next one: there is none.
        sums: NDArray[np.int64] = np.add.reduceat(
            column, np.cumsum(results) - results, dtype=np.int64
        )
        return sums


def split(batch: ObservationBatch, most: int) -> Iterator[ObservationBatch]:
    """`batch` in pieces of at most `most` samples, each with the names it uses only."""
    if len(batch) <= most:
        yield batch
        return
    for begin in range(0, len(batch), most):
        piece = batch.take(np.arange(begin, min(begin + most, len(batch))))
        cells, cell_index = np.unique(piece.cell_index, return_inverse=True)
        kpis, kpi_index = np.unique(piece.kpi_index, return_inverse=True)
        yield replace(
            piece,
            cells=tuple(batch.cells[index] for index in cells),
            kpis=tuple(batch.kpis[index] for index in kpis),
            cell_index=cell_index.astype(np.int32),
            kpi_index=kpi_index.astype(np.int32),
        )
