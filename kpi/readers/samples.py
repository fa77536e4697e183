"""The common end of all readers of PM files: results as text in, observation batches out.

A reader adds one measured object's results at a time; numbers, list counters, KPI names and derived
KPIs are worked out in bulk over the whole file, so that no Python object is made for a number. A
file is read as a whole or not at all: batches come out only at the end.

Axis legend: o objects (one `add` each), s results, n samples, k KPIs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
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
        self._counters: dict[str, int] = {}
        self._texts: list[str] = []
        self._text_counters: list[int] = []
        self._objects: list[tuple[int, int, int, int, bool]] = []
        self._parts: list[_Part] = []
        self._size = 0
        self._junk = 0
        self._infinite = 0

    def counters(self, names: Iterable[str]) -> list[int]:
        """Numbers of counters, for `add`; the same spelling has the same number."""
        known = self._counters
        return [known.setdefault(name, len(known)) for name in names]

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
        self._text_counters += counters
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
        rows = np.array(self._objects, dtype=np.int64)  # (o, 5)
        base = np.array(self._text_counters, dtype=np.int32)  # (s,)
        part = _Part.of(rows, base, numbers.values, numbers.lengths)
        if self._options.vectors == "skip":
            part = part.scalars()
        self._parts.append(part)
        self._size += len(numbers.values)
        self._texts, self._text_counters, self._objects = [], [], []

    def _whole(self) -> ObservationBatch:
        """All parts as one batch, derived KPIs included."""
        part = self._parts[0] if len(self._parts) == 1 else _Part.concatenate(self._parts)
        kpis: dict[str, int] = {}
        numbers = [
            kpis.setdefault(name, len(kpis))
            for name in self._catalogue.canonical_names([name.strip() for name in self._counters])
        ]
        kpi = np.array(numbers, dtype=np.int32)[part.counter]  # (n,)
        longest = np.zeros(len(kpis), dtype=np.int64)  # (k,)
        np.maximum.at(longest, kpi, part.position + 1)
        # Slots: every KPI's plain name, then for each the positions of its longest list.
        offsets = len(kpis) + np.cumsum(longest) - longest
        slots = np.where(part.position < 0, kpi, offsets[kpi] + part.position)  # (n,)
        used = np.zeros(len(kpis) + int(longest.sum()), dtype=np.bool_)
        used[slots] = True
        places = np.cumsum(used, dtype=np.int32) - 1
        suffixes = [f"[{index}]" for index in range(int(longest.max()))]
        plain = list(kpis)
        listed: list[str] = []
        for index in np.flatnonzero(longest).tolist():
            name = plain[index]
            listed += [name + suffix for suffix in suffixes[: longest[index]]]
        if not used[len(plain) :].all():
            listed = [*compress(listed, used[len(plain) :].tolist())]
        batch = ObservationBatch(
            cells=tuple(self._cells),
            kpis=(*compress(plain, used[: len(plain)].tolist()), *listed),
            cell_index=part.cell,
            kpi_index=places[slots],
            period_end_ms=part.period_end_ms,
            period_ms=part.period_ms,
            values=part.values,
            suspect=part.suspect,
            arrival_ms=self._arrival_ms,
        )
        return derive(
            batch,
            self._catalogue,
            lambda name: int(places[kpis[name]]) if name in kpis and used[kpis[name]] else None,
        )


@dataclass(frozen=True, slots=True)
class _Part:
    """Columns of n samples before they have names; `position` is -1 outside of lists."""

    cell: NDArray[np.int32]
    counter: NDArray[np.int32]
    position: NDArray[np.int64]
    period_end_ms: NDArray[np.int64]
    period_ms: NDArray[np.int64]
    values: NDArray[np.float64]
    suspect: NDArray[np.bool_]

    @staticmethod
    def of(
        objects: NDArray[np.int64],
        counters: NDArray[np.int32],
        values: NDArray[np.float64],
        lengths: NDArray[np.int64],
    ) -> _Part:
        """Spread objects (o, 5) and results (s,) over the samples (n,)."""
        first = np.cumsum(lengths) - lengths  # (s,)
        is_list = lengths > 1
        position = np.where(
            np.repeat(is_list, lengths), np.arange(len(values)) - np.repeat(first, lengths), -1
        )
        starts = np.cumsum(objects[:, 1]) - objects[:, 1]
        spread = np.repeat(np.arange(len(objects)), np.add.reduceat(lengths, starts))  # (n,)
        cell, _, end_ms, period_ms, suspect = objects.T
        return _Part(
            cell=cell.astype(np.int32)[spread],
            counter=np.repeat(counters, lengths),
            position=position,
            period_end_ms=end_ms[spread],
            period_ms=period_ms[spread],
            values=values,
            suspect=suspect.astype(np.bool_)[spread],
        )

    @staticmethod
    def concatenate(parts: Sequence[_Part]) -> _Part:
        """One part after the other."""
        columns = {
            field.name: np.concatenate([getattr(part, field.name) for part in parts])
            for field in fields(_Part)
        }
        return _Part(**columns)

    def scalars(self) -> _Part:
        """The samples that are no positions of a list."""
        keep = self.position < 0
        return _Part(**{field.name: getattr(self, field.name)[keep] for field in fields(self)})


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
