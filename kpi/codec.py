"""An observation batch as bytes: an Arrow stream with compressed buffers, and back.

Names are dictionary-encoded, so that a batch of one reporting period costs a few bytes a sample.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kpi.observation import ObservationBatch


class DamagedBatchError(ValueError):
    """Bytes that are no encoded batch."""


def encode(batch: ObservationBatch) -> bytes:
    """A batch as a compressed Arrow stream; names that no sample uses are left out."""
    cell_index, cells = _used(batch.cell_index, batch.cells)
    kpi_index, kpis = _used(batch.kpi_index, batch.kpis)
    columns = {
        "cell": pa.DictionaryArray.from_arrays(pa.array(cell_index), pa.array(cells, pa.string())),
        "kpi": pa.DictionaryArray.from_arrays(pa.array(kpi_index), pa.array(kpis, pa.string())),
        "period_end_ms": pa.array(batch.period_end_ms),
        "period_ms": pa.array(batch.period_ms),
        "value": pa.array(batch.values),
        "suspect": pa.array(batch.suspect),
    }
    table = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    table = table.replace_schema_metadata({"arrival_ms": str(batch.arrival_ms)})
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_batch(table)
    return bytes(sink.getvalue())


def decode(payload: bytes) -> ObservationBatch:
    """The inverse of `encode`.

    Raises:
        DamagedBatchError: The payload is none that `encode` made.
    """
    try:
        with pa.ipc.open_stream(payload) as reader:
            return _batch(reader.read_next_batch())
    except (ValueError, TypeError, KeyError, OSError, StopIteration, pa.ArrowException) as error:
        raise DamagedBatchError(f"it is no Arrow stream of observations ({error})") from error


def _batch(table: pa.RecordBatch) -> ObservationBatch:
    cell, kpi = table.column("cell"), table.column("kpi")
    return ObservationBatch(
        cells=tuple(cell.dictionary.to_pylist()),
        kpis=tuple(kpi.dictionary.to_pylist()),
        cell_index=cell.indices.to_numpy(),
        kpi_index=kpi.indices.to_numpy(),
        period_end_ms=table.column("period_end_ms").to_numpy(),
        period_ms=table.column("period_ms").to_numpy(),
        values=table.column("value").to_numpy(),
        suspect=table.column("suspect").to_numpy(zero_copy_only=False),
        arrival_ms=int(table.schema.metadata[b"arrival_ms"]),
    )


def _used(
    index: NDArray[np.int32], names: Sequence[str]
) -> tuple[NDArray[np.int32], Sequence[str]]:
    in_use = np.zeros(len(names), dtype=np.bool_)
    in_use[index] = True
    if in_use.all():
        return index, names
    number = (np.cumsum(in_use) - 1).astype(np.int32)
    return number[index], [names[position] for position in np.flatnonzero(in_use).tolist()]
