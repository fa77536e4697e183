"""Counters as text: the step that PM XML and PM reports share, after a vendor's names are chosen.

Axis legend: O objects, M counters, n periods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from training.simulate.cell import Cell, Gnb
from training.simulate.measurements import MEASUREMENTS
from training.simulate.report import Report

Text = str | None


@dataclass(frozen=True, slots=True)
class CounterTable:
    """The counters of one class of objects.

    Attributes:
        meas_info_id: Name of the group.
        counters: Names of the M counters.
        objects: Names of the O objects, below or with the managed element as the vendor has it.
        cells: For each object the position of its cell in the report.
        texts: For each object and each period the M values as text; None is left out.
    """

    meas_info_id: str
    counters: tuple[str, ...]
    objects: tuple[str, ...]
    cells: tuple[int, ...]
    texts: tuple[tuple[tuple[Text, ...], ...], ...]


Projection = Callable[[Report], tuple[CounterTable, ...]]
"""From TS 28.552 measurements to a vendor's counters; several tables where objects differ."""


def column(
    values: NDArray[np.float64], omitted: NDArray[np.bool_], decimals: int, missing: str
) -> list[Text]:
    """One counter of one object over n periods as text.

    Args:
        values: (n,), NaN where missing.
        omitted: (n,), whether a missing value is left out.
        decimals: Digits after the point.
        missing: Text of a missing value that is not left out.
    """
    texts: list[Text] = [f"{value:.{decimals}f}" for value in values.tolist()]
    gaps = np.isnan(values)
    if gaps.any():
        for position in np.flatnonzero(gaps).tolist():
            texts[position] = None if omitted[position] else missing
    return texts


def table(
    meas_info_id: str,
    counters: Sequence[str],
    objects: Sequence[str],
    columns: Sequence[Sequence[list[Text]]],
    cells: Sequence[int] | None = None,
) -> CounterTable:
    """Turn columns (one list over periods for each object and counter) into rows of a table."""
    return CounterTable(
        meas_info_id,
        tuple(counters),
        tuple(objects),
        tuple(range(len(objects)) if cells is None else cells),
        tuple(tuple(zip(*of_object, strict=True)) for of_object in columns),
    )


def plain(report: Report) -> tuple[CounterTable, ...]:
    """TS 28.552 names, everything on the NRCellDU of a gNB that is not split."""
    decimals = [MEASUREMENTS[name].decimals for name in report.kpis]
    columns = [
        [
            column(report.values[c, k], report.omitted[c, k], decimals[k], "NIL")
            for k in range(len(report.kpis))
        ]
        for c in range(len(report.gnb.cells))
    ]
    objects = [f"GNBDUFunction=1,NRCellDU={cell.local_id}" for cell in report.gnb.cells]
    return (table("NRCellDU", report.kpis, objects, columns),)


def distributed_unit(gnb: Gnb, cell: Cell) -> str:
    """Full name of the part of a cell that the distributed unit serves."""
    return f"ManagedElement={gnb.name},GNBDUFunction=1,NRCellDU={cell.local_id}"


def central_unit(gnb: Gnb, cell: Cell) -> str:
    """Full name of the part of a cell that the central unit's control plane serves."""
    return f"ManagedElement={gnb.name},GNBCUCPFunction=1,NRCellCU={cell.local_id}"
