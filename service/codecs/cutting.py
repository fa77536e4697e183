"""Cutting the lists of samples out of a JSON text, so that no sample becomes a Python object.

The lists are read by C++ into one array; what is left of the text, its skeleton, has the number of
a list where the list was, and is checked like any other text.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from service.codecs.native.library import load
from service.room import SMALL_BYTES

OF_SERIES = "1{[{{"
"""Samples under any name in an object of an object of a list of the body: KPIs of a series."""

_NOTED = 3  # numbers of a list's note before its lengths: end, wholeness, dimensions


@dataclass(frozen=True, slots=True)
class CutText:
    """A JSON text in two parts.

    Attributes:
        skeleton: The text with `[i]` in the place of list i.
        lists: The lists as float64 in their shapes, NaN for null; finite values are within float32.
        whole: Of each, whether all of it are whole numbers that float64 holds exactly.
    """

    skeleton: bytes
    lists: list[NDArray[np.float64]]
    whole: list[bool]


def cut_samples(text: bytes, places: Sequence[str] = (OF_SERIES,)) -> CutText | None:
    """Cut the lists of samples out of the body of a request.

    Args:
        text: What should be JSON. Whether it is, is only known of the lists that were cut.
        places: Where they stand: how deep they may be nested, then the brackets that are open
            around them, then the name before them where it is not any, such as `8{[{data`. Under
            such a name, what begins with a string is no list of samples and is left.

    Returns:
        The parts, or None where the text holds a list of samples that is not plainly good, or where
        the library is not there.
    """
    library = load()
    cut = library.at_once if len(text) <= SMALL_BYTES else library.aside
    if cut is None:
        return None
    # More than what is sensible needs; pages that are not used cost nothing.
    most_values, most_notes, most_skeleton = len(text) // 2 + 1, len(text) // 2 + 8, 2 * len(text)
    numbers = np.empty(most_values + most_notes + most_skeleton // 8 + 1, dtype=np.float64)
    address = numbers.ctypes.data
    notes_at, skeleton_at = most_values, most_values + most_notes
    length = ctypes.c_int64()
    found = cut(
        text,
        len(text),
        "".join(f"{place} " for place in places).encode(),
        address + 8 * skeleton_at,
        most_skeleton,
        ctypes.byref(length),
        address,
        most_values,
        address + 8 * notes_at,
        most_notes,
    )
    if found < 0:
        return None
    skeleton = numbers[skeleton_at:].view(np.uint8)[: length.value].tobytes()
    return CutText(skeleton, *_lists(numbers, numbers[notes_at:].view(np.int64), found))


def _lists(
    numbers: NDArray[np.float64], notes: NDArray[np.int64], found: int
) -> tuple[list[NDArray[np.float64]], list[bool]]:
    """The lists, and whether each is whole, from what was noted of them."""
    flat = notes[: found * (_NOTED + 1)].reshape(found, _NOTED + 1)
    if (flat[:, 2] == 1).all():  # what most bodies have: then all notes are of one length
        bounds = pairwise([0, *flat[:, 0].tolist()])
        return [numbers[begin:end] for begin, end in bounds], (flat[:, 1] == 1).tolist()
    lists: list[NDArray[np.float64]] = []
    whole: list[bool] = []
    begin = at = 0
    for _ in range(found):
        end, is_whole, dimensions = notes[at : at + _NOTED].tolist()
        at += _NOTED + dimensions
        lists.append(numbers[begin:end].reshape(notes[at - dimensions : at]))
        whole.append(is_whole == 1)
        begin = end
    return lists, whole
