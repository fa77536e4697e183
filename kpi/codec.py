"""An observation batch as bytes: an Arrow stream with compressed buffers, and back.

Names are dictionary-encoded, so that a batch of one reporting period costs a few bytes a sample.
Arrays are made of buffers and read as buffers: `pa.array` and `to_numpy` import pandas where it is
installed, only to ask whether the values are its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kpi.observation import ObservationBatch

Number = TypeVar("Number", bound=np.number[Any])

SCHEMA = pa.schema(
    {
        "cell": pa.dictionary(pa.int32(), pa.string()),
        "kpi": pa.dictionary(pa.int32(), pa.string()),
        "period_end_ms": pa.int64(),
        "period_ms": pa.int64(),
        "value": pa.float64(),
        "suspect": pa.bool_(),
    }
)


class DamagedBatchError(ValueError):
    """Bytes that are no encoded batch."""


def encode(batch: ObservationBatch) -> bytes:
    """A batch as a compressed Arrow stream; names that no sample uses are left out."""
    table = pa.RecordBatch.from_arrays(
        [
            _names_column(batch.cell_index, batch.cells),
            _names_column(batch.kpi_index, batch.kpis),
            _column(batch.period_end_ms, pa.int64()),
            _column(batch.period_ms, pa.int64()),
            _column(batch.values, pa.float64()),
            pa.Array.from_buffers(
                pa.bool_(),
                len(batch),
                [None, pa.py_buffer(np.packbits(batch.suspect, bitorder="little"))],
            ),
        ],
        schema=SCHEMA.with_metadata({"arrival_ms": str(batch.arrival_ms)}),
    )
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
            table = reader.read_next_batch()
        if not table.schema.equals(SCHEMA):
            raise DamagedBatchError(f"expected the columns {SCHEMA}, got {table.schema}")
        cell, kpi, period_end, period, value, suspect = table.columns
        bits = np.frombuffer(suspect.buffers()[1], np.uint8)
        return ObservationBatch(
            cells=tuple(cell.dictionary.to_pylist()),
            kpis=tuple(kpi.dictionary.to_pylist()),
            cell_index=_numbers(cell.indices, np.int32),
            kpi_index=_numbers(kpi.indices, np.int32),
            period_end_ms=_numbers(period_end, np.int64),
            period_ms=_numbers(period, np.int64),
            values=_numbers(value, np.float64),
            suspect=np.unpackbits(bits, count=len(table), bitorder="little").astype(np.bool_),
            arrival_ms=int(table.schema.metadata[b"arrival_ms"]),
        )
    except DamagedBatchError:
        raise
    except (ValueError, TypeError, KeyError, OSError, StopIteration, pa.ArrowException) as error:
        raise DamagedBatchError(f"it is no Arrow stream of observations ({error})") from error


def _names_column(index: NDArray[np.int32], names: Sequence[str]) -> pa.DictionaryArray:
    in_use = np.zeros(len(names), dtype=np.bool_)
    in_use[index] = True
    if not in_use.all():
        index = (np.cumsum(in_use) - 1).astype(np.int32)[index]
        names = [names[position] for position in np.flatnonzero(in_use).tolist()]
    encoded = [name.encode() for name in names]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int32)
    np.cumsum([len(name) for name in encoded], out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    dictionary = pa.Array.from_buffers(pa.string(), len(encoded), buffers)
    return pa.DictionaryArray.from_arrays(_column(index, pa.int32()), dictionary)


def _column(values: NDArray[np.number], kind: pa.DataType) -> pa.Array:
    buffer = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, len(values), [None, buffer])


def _numbers(column: pa.Array, dtype: type[Number]) -> NDArray[Number]:
    return np.frombuffer(column.buffers()[1], dtype, count=len(column))
