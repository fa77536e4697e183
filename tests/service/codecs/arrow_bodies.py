"""Arrow bodies for tests, from rows as a person would write them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from tests.service.fakes import NOON_MS

INSTANT = pa.timestamp("ms", tz="UTC")
SAMPLES = pa.list_(pa.float32())
EVENTS = pa.list_(pa.struct([("start", INSTANT), ("end", INSTANT), ("kind", pa.string())]))
ROWS = (("a", "RRU.PrbTotDl", [12.0, None, 15.5]), ("a", "DRB.MeanActiveUeDl", [3.0, 4.0, 4.0]))


def arrow_table(rows: Any = ROWS, **columns: Any) -> pa.Table:
    """Rows of cell, KPI and samples; `columns` replace or add some, None leaves one out."""
    made: dict[str, Any] = {
        "cell": [row[0] for row in rows],
        "kpi": [row[1] for row in rows],
        "start": pa.array([NOON_MS - 7_200_000] * len(rows), INSTANT),
        "step_seconds": [900.0] * len(rows),
        "values": pa.array([row[2] for row in rows], SAMPLES),
        **columns,
    }
    return pa.table({name: column for name, column in made.items() if column is not None})


def arrow_body(table: pa.Table, *, compression: str | None = None, **options: Any) -> bytes:
    """The stream of a table, with options in its metadata."""
    if options:
        table = table.replace_schema_metadata({"rancast": json.dumps(options)})
    sink = pa.BufferOutputStream()
    write = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=write) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
