"""Columns of an Arrow request as checked arrays, without one Python object a row where it can be.

Faults are named by column and row: `/values/17`.

Axis legend: n rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from service.errors import InvalidRequestError
from service.schemas import MAX_STEP_SECONDS
from service.series import pointer
from service.timestamps import EARLIEST_MS, LATEST_MS, to_rfc3339

NAME_LETTERS = 1024
_LARGEST = float(np.finfo(np.float32).max)
# Ticks of a unit in a millisecond; a second has less than one.
_TICKS = {"ms": 1, "us": 1_000, "ns": 1_000_000}
_WHOLE_MS = 1e-6


@dataclass(frozen=True, slots=True)
class Names:
    """A column of names.

    Attributes:
        distinct: Names, each once.
        codes: int64 (n,), position of each row's name; -1 where it has none.
    """

    distinct: list[str]
    codes: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Lists:
    """A column of lists of numbers.

    Attributes:
        values: float32 or float64, all lists one behind another, NaN where a value is missing.
        begins: int64 (n,), where each list begins in `values`.
        lengths: int64 (n,), at least 1.
    """

    values: NDArray[np.float32] | NDArray[np.float64]
    begins: NDArray[np.int64]
    lengths: NDArray[np.int64]


def names_of(column: str, array: pa.Array, *, optional: bool = False) -> Names:
    """Names of 1 to 1,024 letters: utf8, large or dictionary-encoded; null only where optional.

    Raises:
        InvalidRequestError: A row has none, or the column is of another type.
    """
    if optional and pa.types.is_null(array.type):
        return Names([], np.full(len(array), -1, dtype=np.int64))
    coded = array if pa.types.is_dictionary(array.type) else None
    text = coded.dictionary if coded is not None else array
    if not (pa.types.is_string(text.type) or pa.types.is_large_string(text.type)):
        raise _wrong_type(column, "utf8 or a dictionary of utf8", array)
    if coded is None:
        coded = text.dictionary_encode()
        text = coded.dictionary
    codes = _codes(coded)
    if text.null_count:  # a dictionary may hold null as one of its values
        is_null = np.append(_nulls(text), False)
        codes = np.where(is_null[codes], -1, codes)
    if not optional:
        _refuse(column, codes < 0, "expected a name, got null")
    letters = pc.utf8_length(text).to_numpy(zero_copy_only=False)
    is_good = (letters >= 1) & (letters <= NAME_LETTERS)  # a null's letters are NaN
    known = codes >= 0
    _refuse(
        column,
        known & ~np.append(is_good, True)[codes],
        f"expected a name of 1 to {NAME_LETTERS} characters",
    )
    # Of a dictionary, which may hold what no row has, only what some row has.
    used = np.unique(codes[known])
    if len(used) < len(text):
        text = text.take(pa.array(used))
        codes = np.where(known, np.searchsorted(used, codes), -1)
    return _distinct(text.to_pylist(), codes)


def _codes(coded: pa.DictionaryArray) -> NDArray[np.int64]:
    indices = coded.indices
    if indices.null_count:
        indices = pc.fill_null(indices.cast(pa.int64()), -1)
    return np.asarray(indices.to_numpy(zero_copy_only=False)).astype(np.int64)


def _distinct(names: list[str], codes: NDArray[np.int64]) -> Names:
    """A dictionary may hold a name twice; here each has one number."""
    position: dict[str, int] = {}
    numbers = [position.setdefault(name, len(position)) for name in names]
    if len(position) < len(names):
        codes = np.array([*numbers, -1], dtype=np.int64)[codes]
    return Names(list(position), codes)


def instants_ms(column: str, array: pa.Array) -> NDArray[np.int64]:
    """Instants in milliseconds since 1970: timestamps of any unit with a time zone, none null.

    Raises:
        InvalidRequestError: A row has none or one outside the years that are understood, or the
            column is of another type.
    """
    if not pa.types.is_timestamp(array.type) or array.type.tz is None:
        raise _wrong_type(column, "a timestamp with a time zone, such as timestamp[ms, UTC]", array)
    _refuse(column, _nulls(array), "expected an instant, got null")
    ticks = array.view(pa.int64()).to_numpy(zero_copy_only=False)
    if array.type.unit == "s":
        # Clipped, so that what is far outside stays there and does not overflow.
        return np.asarray(np.clip(ticks, -LATEST_MS, LATEST_MS) * 1000, dtype=np.int64)
    return np.asarray(ticks // _TICKS[array.type.unit], dtype=np.int64)


def steps_ms(column: str, array: pa.Array) -> NDArray[np.int64]:
    """Lengths of samples in milliseconds from a column of seconds.

    Raises:
        InvalidRequestError: A row has none or one out of bounds, or the column is of another type.
    """
    if not (pa.types.is_floating(array.type) or pa.types.is_integer(array.type)):
        raise _wrong_type(column, "numbers", array)
    seconds = _filled(array).astype(np.float64)
    is_bad = ~((seconds > 0) & (seconds <= MAX_STEP_SECONDS))
    _refuse(column, is_bad, f"expected seconds above 0 and up to {MAX_STEP_SECONDS}")
    exact = seconds * 1000
    steps = np.rint(exact)
    is_bad = (steps < 1) | (np.abs(steps - exact) > _WHOLE_MS)
    _refuse(column, is_bad, "expected a whole number of milliseconds")
    return steps.astype(np.int64)


def lists_of(column: str, array: pa.Array) -> Lists:
    """Lists of numbers: any kind of list, of float16, 32 or 64 or of integers of 16 bits and more.

    Null and NaN are both a missing value.

    Raises:
        InvalidRequestError: A row has no list, an empty one, or a value that float32 cannot hold;
            or the column is of another type.
    """
    kind = array.type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not (is_list or pa.types.is_fixed_size_list(kind)) or not _is_sample(kind.value_type):
        raise _wrong_type(column, "lists of float32 or float64", array)
    _refuse(column, _nulls(array), "expected a list, got null")
    if is_list:
        offsets = array.offsets.to_numpy().astype(np.int64)
    else:
        offsets = (np.arange(len(array) + 1) + array.offset) * kind.list_size
    lengths = np.diff(offsets)
    _refuse(column, lengths < 1, "expected at least one value")
    values = _filled(array.values)
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)
    used = values[offsets[0] : offsets[-1]]
    # Two numbers tell more quickly than a comparison of each; they pass over NaN.
    if len(used) and not (np.fmax.reduce(used) <= _LARGEST and np.fmin.reduce(used) >= -_LARGEST):
        place = np.flatnonzero(np.abs(used) > _LARGEST)
        if len(place):  # otherwise all are NaN
            at = int(place[0]) + int(offsets[0])
            row = int(np.searchsorted(offsets, at, side="right")) - 1
            raise InvalidRequestError(
                pointer(column, row, at - int(offsets[row])),
                f"expected a value within ±{_LARGEST:.3g}, or null, got {values[at]:g}",
            )
    return Lists(values, offsets[:-1], lengths)


def check_span(
    start_ms: NDArray[np.int64], step_ms: NDArray[np.int64], lengths: NDArray[np.int64]
) -> None:
    """Refuse series that begin or end outside the years that are understood.

    Raises:
        InvalidRequestError: One does.
    """
    _refuse(
        "start",
        (start_ms < EARLIEST_MS) | (start_ms + lengths * step_ms > LATEST_MS),
        f"expected samples between {to_rfc3339(EARLIEST_MS)} and {to_rfc3339(LATEST_MS)}",
    )


def column_types() -> Iterable[tuple[str, str]]:
    """Columns that a request may have, with their types in words; the first five are required."""
    return (
        ("cell", "utf8, or a dictionary of utf8"),
        ("kpi", "utf8, or a dictionary of utf8"),
        ("start", "timestamp with a time zone"),
        ("step_seconds", "float or integer"),
        ("values", "list of float"),
        ("time_zone", "utf8, or a dictionary of utf8; optional"),
        ("country", "utf8, or a dictionary of utf8; optional"),
        ("events", "list of struct of start, end and kind; optional"),
    )


def _is_sample(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or (pa.types.is_integer(kind) and kind.bit_width > 8))


def _filled(array: pa.Array) -> NDArray[Any]:
    """The column as an array, shared where it can be; nulls are NaN."""
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _nulls(array: pa.Array) -> NDArray[np.bool_]:
    if not array.null_count:
        return np.zeros(len(array), dtype=np.bool_)
    return np.asarray(array.is_null().to_numpy(zero_copy_only=False))


def _refuse(column: str, is_bad: NDArray[np.bool_], reason: str) -> None:
    """Raise for the first bad row, where there is one."""
    if is_bad.any():
        raise InvalidRequestError(pointer(column, int(np.argmax(is_bad))), reason)


def _wrong_type(column: str, expected: str, array: pa.Array) -> InvalidRequestError:
    return InvalidRequestError(pointer(column), f"expected {expected}, got {array.type}")
