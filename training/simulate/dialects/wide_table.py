"""Wide tables, CSV or Parquet: one row a cell and period, one column a measurement.

`timestamp` is the begin of the period, with its offset; a missing value is an empty field.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from training.simulate.dialects.counter_table import distributed_unit
from training.simulate.measurements import MEASUREMENTS
from training.simulate.naming import NameStyle, file_name
from training.simulate.report import Report


@dataclass(frozen=True, slots=True)
class TableDialect:
    """CSV or Parquet.

    Attributes:
        form: Which of the two.
        many_periods: A file may hold more than one period.
    """

    form: Literal["csv", "parquet"]
    many_periods: bool = True

    def file_name(self, report: Report) -> str:
        """Name of the report's file."""
        return file_name(report, NameStyle(suffix=f".{self.form}"))

    def encode(self, report: Report, *, compact: bool = False) -> bytes:  # noqa: ARG002
        """The table; it has no compact form."""
        columns = _columns(report)
        sink = io.BytesIO()
        if self.form == "parquet":
            pa.parquet.write_table(pa.table(columns), sink)
        else:
            stamps = columns["timestamp"]
            columns["timestamp"] = pa.array(
                [stamp.as_py().isoformat(timespec="seconds") for stamp in stamps]
            )
            pa.csv.write_csv(pa.table(columns), sink)
        return sink.getvalue()


def _columns(report: Report) -> dict[str, pa.Array]:
    """Columns of C * n rows, period by period."""
    cells, periods = len(report.gnb.cells), len(report.periods)
    begin_ms = report.periods * report.period_ms + report.clock_ms  # (n,)
    columns = {
        "timestamp": pa.array(np.repeat(begin_ms, cells), pa.timestamp("ms", report.zone.key)),
        "cell": pa.array([distributed_unit(report.gnb, c) for c in report.gnb.cells] * periods),
    }
    for k, name in enumerate(report.kpis):
        values = report.values[:, k].T.ravel()  # (n * C,)
        if MEASUREMENTS[name].decimals:
            columns[name] = pa.array(values, from_pandas=True)
        else:
            gaps = np.isnan(values)
            columns[name] = pa.array(np.where(gaps, 0, values).astype(np.int64), mask=gaps)
    columns["suspect"] = pa.array(report.suspect.T.ravel())
    return columns
