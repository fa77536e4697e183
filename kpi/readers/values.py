"""Measurement results as text to numbers, in bulk.

TS 32.435 allows a float or `NIL`; vendors add blanks, comma lists (distributions) and text.
Whatever is no finite number is missing, never 0.

Axis legend: s samples as the source has them, n numbers after lists are taken apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_MISSING = ("NIL", "nil", "Nil", "null", "NULL", "-")
_SEPARATOR = "\x1f"
_COMMA = ord(",")
_MARKS = " \t\r\n\f\v," + _SEPARATOR
_INFINITE = {"inf": np.inf, "infinity": np.inf}
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Numbers:
    """Parsed results.

    Attributes:
        values: float64 (n,), NaN where there is no finite number.
        lengths: int64 (s,), how many numbers each result has; over 1 for a comma list.
        junk: How many were neither a number nor a way to say that there is none.
        infinite: How many were infinite or beyond float64.
    """

    values: NDArray[np.float64]
    lengths: NDArray[np.int64]
    junk: int
    infinite: int


def parse_results(texts: Sequence[str], max_numbers: int) -> Numbers:
    """Numbers of results, comma lists taken apart.

    Args:
        texts: One entry a result; blank is missing.
        max_numbers: Bound of n.

    Raises:
        ValueError: The lists hold more numbers than that.
    """
    joined = _SEPARATOR.join(texts)
    if joined.count(_SEPARATOR) != len(texts) - 1:
        clean = [text.replace(_SEPARATOR, "?") for text in texts]
        joined = _SEPARATOR.join(clean)
    # Half of a surrogate pair, which JSON can carry, becomes a question mark and so no number.
    data = joined.encode("utf-8", "replace")
    codes = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero((codes == _COMMA) | (codes == ord(_SEPARATOR)))  # (n - 1,)
    total = len(ends) + 1
    if total > max_numbers:
        raise ValueError(f"expected at most {max_numbers} samples, got {total}")
    last = np.append(np.flatnonzero(codes[ends] == ord(_SEPARATOR)), total - 1)  # (s,)
    lengths = np.diff(last, prepend=-1)
    offsets = np.empty(total + 1, dtype=np.int32)
    offsets[0], offsets[1:-1], offsets[-1] = 0, ends + 1, len(data)
    # Every token ends in the mark after it, which is trimmed with the blanks.
    tokens = pa.StringArray.from_buffers(total, pa.py_buffer(offsets), pa.py_buffer(data))
    return _numbers(_blank_as_null(pc.ascii_trim(tokens, _MARKS)), lengths)


def _blank_as_null(tokens: pa.StringArray) -> pa.StringArray:
    """The same texts without copying them, null where there is none."""
    _, offsets, data = tokens.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32, count=len(tokens) + 1)
    given = np.packbits(ends[1:] > ends[:-1], bitorder="little")
    return pa.StringArray.from_buffers(len(tokens), offsets, data, pa.py_buffer(given))


def _numbers(tokens: pa.StringArray, lengths: NDArray[np.int64]) -> Numbers:
    junk = 0
    try:
        values = tokens.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        missing = pc.is_in(tokens, value_set=pa.array(_MISSING))
        cleaned = pc.if_else(missing, None, tokens)
        parsed = [parse_number(text) for text in cleaned.to_pylist()]
        junk = sum(value is None for value in parsed) - cleaned.null_count
        values = np.array(parsed, dtype=np.float64)
    infinite = np.isinf(values)
    found = int(np.count_nonzero(infinite))
    if found:
        values = np.where(infinite, np.nan, values)
    return Numbers(values, lengths, junk, found)


def parse_number(text: str | None) -> float | None:
    """The number that a text is, infinite where it is too large; None where it is none."""
    if text is None:
        return None
    if _NUMBER.fullmatch(text):
        return float(text)
    return _INFINITE.get(text.casefold().lstrip("+-"))
