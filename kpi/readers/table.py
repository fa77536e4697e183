"""CSV and Parquet tables, long or wide, with the meaning of columns given or found by usual names.

Axis legend: n rows, k KPI columns.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from kpi.catalogue import Catalogue
from kpi.errors import UnreadableFileError
from kpi.observation import ObservationBatch
from kpi.readers.columns import (
    Columns,
    encode,
    find_columns,
    flags,
    floats,
    infer_periods,
    is_number,
    is_text,
    stamps,
)
from kpi.readers.derive import derive
from kpi.readers.options import ColumnMapping, ReadOptions
from kpi.readers.samples import split

_DELIMITERS = ",;\t|"
_HEADER_BYTES = 1 << 20
_THREADED_BYTES = 8 << 20
_NULLS = ["", "NIL", "nil", "NaN", "nan", "NULL", "null", "None", "NA", "N/A", "-"]


def read_csv(
    data: bytes, path: Path, options: ReadOptions, catalogue: Catalogue, *, arrival_ms: int
) -> Iterator[ObservationBatch]:
    """Batches of CSV text in UTF-8.

    The delimiter is the commonest of comma, semicolon, tab and bar in the first line. Where it is
    the semicolon, a comma is a decimal point, unless the same column has points too.

    Raises:
        UnreadableFileError: It is no table, lacks a column, or a time stamp cannot be read.
    """
    head = data.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0][:_HEADER_BYTES]
    first = head.decode("utf-8", "replace").rstrip("\r")
    delimiter = max(_DELIMITERS, key=first.count)
    try:
        names = next(csv.reader([first], delimiter=delimiter), [])
        columns = find_columns(names, options.columns)
        as_text = (columns.timestamp, columns.cell, columns.kpi)
        table = pyarrow.csv.read_csv(
            pa.py_buffer(data),
            # Threads cost more than they save on the tables that a network element writes.
            read_options=pyarrow.csv.ReadOptions(use_threads=len(data) > _THREADED_BYTES),
            parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={name: pa.string() for name in as_text if name is not None},
                null_values=_NULLS,
                strings_can_be_null=True,
            ),
        )
        if table.column_names != names:
            raise ValueError(
                "expected the names of the columns in one line of UTF-8 text, at most "
                f"{_HEADER_BYTES} bytes long, got {first[:80]!r}"
            )
    except (ValueError, csv.Error, pa.ArrowException) as error:
        raise _unreadable(path, error) from error
    return _read(
        table, columns, path, options, catalogue, arrival_ms, decimal_comma=delimiter == ";"
    )


def read_parquet(
    path: Path, options: ReadOptions, catalogue: Catalogue, *, arrival_ms: int
) -> Iterator[ObservationBatch]:
    """Batches of a Parquet file.

    Raises:
        UnreadableFileError: It is damaged, has more values than the limit, lacks a column, or a
            time stamp cannot be read.
    """
    limits = options.limits
    try:
        if path.stat().st_size > limits.max_bytes:
            raise ValueError(f"expected at most {limits.max_bytes} bytes; split the file")
        with pyarrow.parquet.ParquetFile(path) as file:
            # A few bytes of dictionary and run lengths can stand for any number of rows.
            cells = file.metadata.num_rows * file.metadata.num_columns
            if cells > 4 * limits.max_samples:
                raise ValueError(
                    f"expected at most {4 * limits.max_samples} values, got {cells}; split the file"
                )
            schema = file.schema_arrow
            columns = find_columns(schema.names, options.columns)
            size = sum(
                file.metadata.row_group(group).total_byte_size
                for group in range(file.metadata.num_row_groups)
            )
            if size > limits.max_bytes:
                raise ValueError(
                    f"expected at most {limits.max_bytes} bytes after decompression, got {size}; "
                    "split the file"
                )
        wanted, texts = _wanted(schema, columns)
        # Texts stay in their dictionaries: written out, one long text stands in every row.
        with pyarrow.parquet.ParquetFile(path, read_dictionary=texts) as file:
            table = file.read(columns=wanted)
    except (ValueError, OSError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error
    return _read(table, columns, path, options, catalogue, arrival_ms)


def _wanted(schema: pa.Schema, columns: Columns) -> tuple[list[str], list[str]]:
    """Columns of a typed file that are read, and which of them hold texts.

    Raises:
        ValueError: A column that means something is of a type that cannot.
    """
    wanted, texts = [], []
    for field in schema:
        kind = field.type
        if field.name in columns.named and field.name not in columns.ignore:
            if is_text(kind) or pa.types.is_binary(kind):
                texts.append(field.name)
            elif not (is_number(kind) or pa.types.is_temporal(kind) or pa.types.is_boolean(kind)):
                raise ValueError(
                    f"expected texts, numbers or times in column {field.name!r}, got {kind}"
                )
            wanted.append(field.name)
        elif is_number(kind) and columns.kpi is None:
            wanted.append(field.name)
    return wanted, texts


def _read(
    table: pa.Table,
    columns: Columns,
    path: Path,
    options: ReadOptions,
    catalogue: Catalogue,
    arrival_ms: int,
    *,
    decimal_comma: bool = False,
) -> Iterator[ObservationBatch]:
    """Batches of a table whose columns are known."""
    try:
        reader = _Table(table, columns, path, options, catalogue, arrival_ms, decimal_comma)
        return reader.long() if columns.kpi is not None else reader.wide()
    except (ValueError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error


class _Table:
    """The state of reading one table.

    `decimal_comma` says that a comma in a text stands for the decimal point.
    """

    def __init__(
        self,
        table: pa.Table,
        columns: Columns,
        path: Path,
        options: ReadOptions,
        catalogue: Catalogue,
        arrival_ms: int,
        decimal_comma: bool,
    ) -> None:
        self._decimal_comma = decimal_comma
        self._columns = columns
        self._path = path
        self._options = options
        self._catalogue = catalogue
        self._arrival_ms = arrival_ms
        self._cells, cell = encode(table[columns.cell])
        self._kpis: list[str] = []
        kpi = np.zeros(len(cell), dtype=np.int64)
        if columns.kpi is not None:
            self._kpis, kpi = encode(table[columns.kpi])
        series = cell * (len(self._kpis) + 1) + kpi
        times, given = stamps(table[columns.timestamp], series, options)
        rows = np.flatnonzero(given & (cell >= 0) & (kpi >= 0))
        if len(rows) < len(cell):
            options.warn("rows_without_cell_or_time", file=path, count=len(cell) - len(rows))
        if not len(rows):
            raise ValueError("expected rows with a cell and a time stamp, found none")
        self._table = table if len(rows) == len(cell) else table.take(pa.array(rows))
        self._cell, self._kpi, self._times = cell[rows], kpi[rows], times[rows]
        suspect = None if columns.suspect is None else flags(self._table[columns.suspect])
        self._suspect = np.zeros(len(rows), dtype=np.bool_) if suspect is None else suspect
        stated = (options.columns or ColumnMapping()).period_seconds
        self._period = (
            infer_periods(self._times, self._cell)[self._cell]
            if stated is None
            else np.full(len(rows), round(stated * 1000), dtype=np.int64)
        )
        if not columns.stamps_are_ends:
            self._times = self._times + self._period

    def long(self) -> Iterator[ObservationBatch]:
        """One sample a row."""
        assert self._columns.value is not None
        values = self._numbers(self._columns.value)
        if values is None:
            raise ValueError(f"expected numbers in column {self._columns.value!r}, got text")
        self._bound(len(values))
        names = self._catalogue.canonical_names(self._kpis)
        kpis = {name: index for index, name in enumerate(dict.fromkeys(names))}
        renumbered = np.array([kpis[name] for name in names], dtype=np.int32)
        batch = self._batch(tuple(kpis), np.arange(len(values)), renumbered[self._kpi], values)
        return split(derive(batch, self._catalogue), self._options.limits.batch_samples)

    def wide(self) -> Iterator[ObservationBatch]:
        """One sample a row and KPI column, row by row."""
        found = {
            name: numbers
            for name in self._table.column_names
            if name not in self._columns.named and (numbers := self._numbers(name)) is not None
        }
        if not found:
            raise ValueError(
                f"expected at least one numeric column besides {sorted(self._columns.named)}, "
                f"found none among {self._table.column_names[:20]}"
            )
        matrix = np.stack(list(found.values()), axis=1)  # (n, k)
        self._bound(matrix.size)
        names = self._catalogue.canonical_names(name.strip() for name in found)
        kpis = {name: index for index, name in enumerate(dict.fromkeys(names))}
        of_column = np.array([kpis[name] for name in names], dtype=np.int32)  # (k,)
        return self._chunks(matrix, tuple(kpis), of_column)

    def _chunks(
        self, matrix: NDArray[np.float64], kpis: tuple[str, ...], of_column: NDArray[np.int32]
    ) -> Iterator[ObservationBatch]:
        """Batches of whole rows, so that the parts of a derived KPI stay together."""
        most = self._options.limits.batch_samples
        size = max(1, most // matrix.shape[1])
        for begin in range(0, len(matrix), size):
            values = matrix[begin : begin + size]
            rows = np.repeat(np.arange(begin, begin + len(values)), len(of_column))
            batch = self._batch(kpis, rows, np.tile(of_column, len(values)), values.ravel())
            yield from split(derive(batch, self._catalogue), most)

    def _numbers(self, name: str) -> NDArray[np.float64] | None:
        found = floats(self._table[name], decimal_comma=self._decimal_comma)
        if found is None:
            return None
        numbers, junk = found
        if junk:
            self._options.warn("values_not_numeric", file=self._path, column=name, count=junk)
        return numbers

    def _bound(self, samples: int) -> None:
        if samples > (most := self._options.limits.max_samples):
            raise ValueError(f"expected at most {most} samples, got {samples}; split the file")

    def _batch(
        self,
        kpis: tuple[str, ...],
        rows: NDArray[np.intp],
        kpi_index: NDArray[np.int32],
        values: NDArray[np.float64],
    ) -> ObservationBatch:
        return ObservationBatch(
            cells=tuple(self._cells),
            kpis=kpis,
            cell_index=self._cell[rows].astype(np.int32),
            kpi_index=kpi_index.astype(np.int32),
            period_end_ms=self._times[rows],
            period_ms=self._period[rows],
            values=values,
            suspect=self._suspect[rows],
            arrival_ms=self._arrival_ms,
        )


def _unreadable(path: Path, error: Exception) -> UnreadableFileError:
    text = " ".join(str(error).split())
    return UnreadableFileError(path, f"cannot be read as a table: {text[:500]}")
