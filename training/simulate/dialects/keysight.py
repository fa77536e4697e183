"""Measurements as a RAN emulator of Keysight writes them.

One measInfo a measurement, named by its clause of TS 28.552; six decimals whatever the unit; every
measurement of the distributed unit again for one 5QI (`.01`) and one slice (`.010003e8`); every
measValue says whether it is suspect.
"""

from __future__ import annotations

from training.simulate.dialects.counter_table import (
    CounterTable,
    central_unit,
    column,
    distributed_unit,
    table,
)
from training.simulate.measurements import MEASUREMENTS
from training.simulate.report import Report

_DECIMALS = 6
_SUB_COUNTERS = (("", 1.0), (".01", 0.75), (".010003e8", 0.25))


def project(report: Report) -> tuple[CounterTable, ...]:
    """The report with a table for each measurement."""
    return tuple(_table(report, k, name) for k, name in enumerate(report.kpis))


def _table(report: Report, k: int, name: str) -> CounterTable:
    measurement = MEASUREMENTS[name]
    parts = _SUB_COUNTERS[:1] if measurement.central else _SUB_COUNTERS
    object_name = central_unit if measurement.central else distributed_unit
    columns = [
        [
            column(report.values[c, k] * share, report.omitted[c, k], _DECIMALS, "NIL")
            for _, share in parts
        ]
        for c in range(len(report.gnb.cells))
    ]
    objects = [object_name(report.gnb, cell) for cell in report.gnb.cells]
    return table(measurement.clause, [name + suffix for suffix, _ in parts], objects, columns)
