"""Observations in columns: what a source reported, before it is put on a grid.

One `ObservationBatch` holds many samples as parallel arrays with dictionary-encoded names, never
one Python object a sample. The identity of a sample is (cell, KPI, period length, period end); the
value of the latest arrival wins.

Axis legend: n samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class ObservationBatch:
    """Samples of one arrival, columnar.

    Attributes:
        cells: Names of the cells (distinguished names); `cell_index` points into them.
        kpis: Names of the KPIs in catalogue spelling; `kpi_index` points into them.
        cell_index: int32 (n,).
        kpi_index: int32 (n,).
        period_end_ms: int64 (n,), end of the granularity period as the source said it, in
            milliseconds since 1970-01-01T00:00Z; not yet snapped to a grid.
        period_ms: int64 (n,), length of the granularity period in milliseconds.
        values: float64 (n,), NaN where the source reported no value.
        suspect: bool (n,), the source's own doubt about the value (TS 32.435 `suspect`).
        arrival_ms: When the batch became available (file-ready time, record time or receipt).
    """

    cells: tuple[str, ...]
    kpis: tuple[str, ...]
    cell_index: NDArray[np.int32]
    kpi_index: NDArray[np.int32]
    period_end_ms: NDArray[np.int64]
    period_ms: NDArray[np.int64]
    values: NDArray[np.float64]
    suspect: NDArray[np.bool_]
    arrival_ms: int

    def __post_init__(self) -> None:
        n = len(self.values)
        for name in ("cell_index", "kpi_index", "period_end_ms", "period_ms", "suspect"):
            if len(getattr(self, name)) != n:
                raise ValueError(
                    f"expected {n} entries in {name}, as in values, got {len(getattr(self, name))}"
                )

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.values)

    def take(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> ObservationBatch:
        """The samples that `rows` selects (mask or positions), names kept as they are."""
        return replace(
            self,
            cell_index=self.cell_index[rows],
            kpi_index=self.kpi_index[rows],
            period_end_ms=self.period_end_ms[rows],
            period_ms=self.period_ms[rows],
            values=self.values[rows],
            suspect=self.suspect[rows],
        )

    @staticmethod
    def concatenate(batches: Sequence[ObservationBatch]) -> ObservationBatch:
        """Samples of several batches, order kept; the arrival is that of the latest.

        Raises:
            ValueError: There is no batch.
        """
        if not batches:
            raise ValueError("expected at least one batch to concatenate, got none")
        cells: dict[str, int] = {}
        kpis: dict[str, int] = {}
        cell_index, kpi_index = [], []
        for batch in batches:
            cell_index.append(_renumber(cells, batch.cells)[batch.cell_index])
            kpi_index.append(_renumber(kpis, batch.kpis)[batch.kpi_index])
        return ObservationBatch(
            cells=tuple(cells),
            kpis=tuple(kpis),
            cell_index=np.concatenate(cell_index),
            kpi_index=np.concatenate(kpi_index),
            period_end_ms=np.concatenate([batch.period_end_ms for batch in batches]),
            period_ms=np.concatenate([batch.period_ms for batch in batches]),
            values=np.concatenate([batch.values for batch in batches]),
            suspect=np.concatenate([batch.suspect for batch in batches]),
            arrival_ms=max(batch.arrival_ms for batch in batches),
        )

    @staticmethod
    def from_lists(
        cells: Sequence[str],
        kpis: Sequence[str],
        period_end_ms: Sequence[int] | NDArray[np.int64],
        period_ms: Sequence[int] | NDArray[np.int64] | int,
        values: Sequence[float | None] | NDArray[np.float64],
        suspect: Sequence[bool] | NDArray[np.bool_] | None = None,
        *,
        arrival_ms: int,
    ) -> ObservationBatch:
        """Build a batch from one entry a sample; `None` becomes NaN.

        Raises:
            ValueError: The columns differ in length.
        """
        n = len(values)
        cell_names, cell_index = _encode(cells)
        kpi_names, kpi_index = _encode(kpis)
        return ObservationBatch(
            cells=cell_names,
            kpis=kpi_names,
            cell_index=cell_index,
            kpi_index=kpi_index,
            period_end_ms=np.asarray(period_end_ms, dtype=np.int64),
            period_ms=(
                np.full(n, period_ms, dtype=np.int64)
                if isinstance(period_ms, int)
                else np.asarray(period_ms, dtype=np.int64)
            ),
            values=np.array(values, dtype=np.float64),
            suspect=(
                np.zeros(n, dtype=np.bool_)
                if suspect is None
                else np.asarray(suspect, dtype=np.bool_)
            ),
            arrival_ms=arrival_ms,
        )


def _encode(names: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Distinct names in order of appearance, and the position of each entry among them."""
    position: dict[str, int] = {}
    index = np.fromiter(
        (position.setdefault(name, len(position)) for name in names),
        dtype=np.int32,
        count=len(names),
    )
    return tuple(position), index


def _renumber(position: dict[str, int], names: Sequence[str]) -> NDArray[np.int32]:
    """Number of each name in `position`, int32 (names,); new names are given the next numbers."""
    return np.fromiter(
        (position.setdefault(name, len(position)) for name in names),
        dtype=np.int32,
        count=len(names),
    )
