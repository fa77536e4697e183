"""What the columns of a table mean, and their content as arrays.

Axis legend: n rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kpi.readers.local_time import to_utc
from kpi.readers.options import ColumnMapping, ReadOptions
from kpi.readers.times import epoch_units_per_ms, parse_wall, parse_zone
from kpi.readers.values import parse_number

_START_STAMPS = (
    "timestamp",
    "time",
    "datetime",
    "date_time",
    "period_start",
    "start_time",
    "begin_time",
    "_time",
    "ts",
)
_END_STAMPS = ("period_end", "end_time")
_CELLS = ("cell", "cell_id", "cellid", "cell_name", "measobjldn", "object", "dn", "_measurement")
_KPIS = ("kpi", "counter", "counter_name", "metric", "_field")
_VALUES = ("value", "_value")
_SUSPECTS = ("suspect", "suspect_flag", "suspectflag")
_INDEXES = ("", "unnamed: 0", "__index_level_0__")


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the columns that are there; `kpi` and `value` for a long table only."""

    timestamp: str
    cell: str
    kpi: str | None
    value: str | None
    suspect: str | None
    ignore: tuple[str, ...]
    stamps_are_ends: bool

    @property
    def named(self) -> set[str]:
        """Columns that are not KPIs."""
        roles = (self.timestamp, self.cell, self.kpi, self.value, self.suspect)
        return {name for name in roles if name is not None} | set(self.ignore)


def find_columns(names: Sequence[str], mapping: ColumnMapping | None) -> Columns:
    """The meaning of columns by the mapping, else by usual names.

    Raises:
        ValueError: A column of the mapping is not there, no column for time stamps or cells is
            found, or two columns share a name.
    """
    mapping = mapping or ColumnMapping()
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if list(names).count(name) > 1})
        raise ValueError(f"expected distinct column names, got {twice[:10]} more than once")
    wanted = (mapping.timestamp, mapping.cell, mapping.kpi, mapping.value, mapping.suspect)
    if lacking := sorted({name for name in wanted if name is not None} - set(names)):
        raise ValueError(f"expected the mapped columns {lacking}, found {list(names)[:20]}")
    by_name = {name.strip().casefold(): name for name in reversed(names)}

    def usual(candidates: Sequence[str]) -> str | None:
        return next((by_name[name] for name in candidates if name in by_name), None)

    timestamp, stamps_are_ends = mapping.timestamp, mapping.stamp == "end"
    if timestamp is None:
        timestamp = usual(_START_STAMPS)
        if timestamp is None and (timestamp := usual(_END_STAMPS)) is not None:
            stamps_are_ends = True
    cell = mapping.cell or usual(_CELLS)
    for role, found, candidates in (
        ("time stamps", timestamp, _START_STAMPS),
        ("cells", cell, _CELLS),
    ):
        if found is None:
            raise ValueError(
                f"expected a column of {role} such as {candidates[0]!r}, found "
                f"{[name[:40] for name in names[:20]]}; name it with a column mapping"
            )
    kpi, value = mapping.kpi, mapping.value
    if kpi is None and usual(_KPIS) and usual(_VALUES):
        kpi, value = usual(_KPIS), usual(_VALUES)
    return Columns(
        timestamp=timestamp or "",
        cell=cell or "",
        kpi=kpi,
        value=value,
        suspect=mapping.suspect or usual(_SUSPECTS),
        ignore=(*mapping.ignore, *(name for name in names if name.casefold() in _INDEXES)),
        stamps_are_ends=stamps_are_ends,
    )


def encode(column: pa.ChunkedArray) -> tuple[list[str], NDArray[np.int64]]:
    """Distinct texts of a column, and each row's place among them; -1 where it is null or blank."""
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    encoded = column.unify_dictionaries().combine_chunks()
    index = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    used = np.unique(index[index >= 0])
    places: dict[str, int] = {}
    place = np.full(len(encoded.dictionary) + 1, -1, dtype=np.int64)
    for number, text in zip(
        used.tolist(),
        encoded.dictionary.take(pa.array(used)).cast(pa.string()).to_pylist(),
        strict=True,
    ):
        if text is not None and (text := text.strip()):
            place[number] = places.setdefault(text, len(places))
    return list(places), place[index]


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds texts, however they are laid out."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def is_number(kind: pa.DataType) -> bool:
    """Whether a column of this type holds numbers, or nothing at all."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
    )


def floats(
    column: pa.ChunkedArray, *, decimal_comma: bool = False
) -> tuple[NDArray[np.float64], int] | None:
    """Numbers of a column, NaN where there is none, and how many texts were no numbers.

    Args:
        column: Numbers or texts (n,).
        decimal_comma: Take a comma in a text for the decimal point; not where other texts of the
            column have a point, since one of the two then groups digits.

    Returns:
        float64 (n,) and the count; None where the column is not of numbers: its type is another, or
        less than half of its texts are.
    """
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan), 0
    if is_number(kind):
        numbers = column.cast(pa.float64(), safe=False).to_numpy()
        return np.where(np.isfinite(numbers), numbers, np.nan), 0
    if not is_text(kind):
        return None
    texts, index = encode(column)
    if decimal_comma and not any("." in text for text in texts):
        texts = [text.replace(",", ".") for text in texts]
    parsed = np.array([parse_number(text) for text in texts], dtype=np.float64)
    junk = np.isnan(parsed) & np.array([text.upper() not in _NOTHING for text in texts], dtype=bool)
    parsed[~np.isfinite(parsed)] = np.nan
    numbers = np.append(parsed, np.nan)[index]
    count = int(np.append(junk, False)[index].sum())
    given = int(np.isfinite(numbers).sum())
    return (numbers, count) if given > count else None


_NOTHING = ("NIL", "NAN", "NULL", "NONE", "NA", "N/A", "-")


def flags(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Truth of a column of booleans, numbers or texts; null is false."""
    if pa.types.is_boolean(column.type):
        return np.asarray(column.fill_null(False).to_numpy(), dtype=np.bool_)
    texts, index = encode(column)
    true = [text.casefold() in ("true", "1", "1.0", "yes") for text in texts]
    return np.append(np.array(true, dtype=np.bool_), False)[index]


def stamps(
    column: pa.ChunkedArray, series: NDArray[np.int64], options: ReadOptions
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """UTC milliseconds of a column of time stamps, and which rows have one.

    Args:
        column: Time stamps with or without zone, dates, texts, or epoch numbers.
        series: Number of each row's series, see `local_time.to_utc` (n,).
        options: Gives the zone of stamps without one.

    Raises:
        ValueError: A stamp cannot be read; the message names the row.
    """
    kind = column.type
    zone = parse_zone(options.time_zone)
    given = column.is_valid().to_numpy().astype(np.bool_)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        whole = column.cast(pa.timestamp("ms", getattr(kind, "tz", None)), safe=False)
        times = whole.cast(pa.int64()).fill_null(0).to_numpy()
        if getattr(kind, "tz", None) is not None:
            return times, given
        return _localised(times, given, series, zone), given
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _epochs(column, given), given
    texts, index = encode(column)
    parsed: list[tuple[int, bool]] = []
    for position, text in enumerate(texts):
        try:
            parsed.append(parse_wall(text))
        except ValueError as error:
            row = int(np.flatnonzero(index == position)[0]) + 1
            raise ValueError(f"row {row}: {error}") from error
    given = index >= 0
    wall = np.array([ms for ms, _ in parsed] + [0], dtype=np.int64)[index]
    local = np.array([not is_utc for _, is_utc in parsed] + [False], dtype=np.bool_)[index]
    return _localised(wall, local, series, zone), given


def _localised(
    wall_ms: NDArray[np.int64],
    is_local: NDArray[np.bool_],
    series: NDArray[np.int64],
    zone: ZoneInfo,
) -> NDArray[np.int64]:
    """Times with the local ones among them turned to UTC."""
    times = wall_ms.copy()
    rows = np.flatnonzero(is_local)
    if len(rows):
        times[rows] = to_utc(wall_ms[rows], series[rows], zone)
    return times


def _epochs(column: pa.ChunkedArray, given: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Milliseconds of epoch numbers, which all have one unit."""
    integral = pa.types.is_integer(column.type)
    numbers = column.fill_null(0).cast(pa.int64() if integral else pa.float64()).to_numpy()
    times = np.zeros(len(numbers), dtype=np.int64)
    rows = np.flatnonzero(given)
    if not len(rows):
        return times
    units = set()
    for place in (int(np.argmin(numbers[rows])), int(np.argmax(numbers[rows]))):
        try:
            units.add(epoch_units_per_ms(float(numbers[rows[place]])))
        except ValueError as error:
            raise ValueError(f"row {int(rows[place]) + 1}: {error}") from error
    if len(units) > 1:
        raise ValueError("expected epoch numbers of one unit in a column, got several")
    unit = units.pop()
    if unit < 1:
        times[rows] = np.round(numbers[rows] * 1000).astype(np.int64)
    else:
        times[rows] = (numbers[rows] // int(unit)).astype(np.int64)
    return times


def infer_periods(times_ms: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Period of every cell, the median spacing of its stamps, in milliseconds.

    A cell with one stamp gets the median of the other cells.

    Args:
        times_ms: Stamps (n,).
        cells: Number of each row's cell (n,).

    Returns:
        int64, one a cell number up to the highest.

    Raises:
        ValueError: No cell has two stamps.
    """
    order = np.lexsort((times_ms, cells))
    steps = np.diff(times_ms[order])
    cell = cells[order][1:]
    apart = (steps > 0) & (cell == cells[order][:-1])
    steps, cell = steps[apart], cell[apart]
    if not len(steps):
        raise ValueError(
            "expected two time stamps of a cell to tell the period from, found one at most; state "
            "period_seconds"
        )
    periods = np.zeros(int(cells.max()) + 1, dtype=np.int64)
    found, begins = np.unique(cell, return_index=True)
    medians = [_lower_median(part) for part in np.split(steps, begins[1:])]
    periods[found] = medians
    periods[periods == 0] = _lower_median(np.array(medians))
    return periods


def _lower_median(numbers: NDArray[np.int64]) -> int:
    middle = (len(numbers) - 1) // 2
    return int(np.partition(numbers, middle)[middle])
