"""Cutting the lists of samples out of a JSON text, so that no sample becomes a Python object.

The lists are read by C++ into one array; what is left of the text, its skeleton, has the number of
a list where the list was, and is checked like any other text.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from service.codecs.native.library import load
from service.room import SMALL_BYTES


@dataclass(frozen=True, slots=True)
class CutText:
    """A JSON text in two parts.

    Attributes:
        skeleton: The text with `[i]` in the place of list i.
        lists: The lists as float64, NaN for null; all finite values are within float32.
    """

    skeleton: bytes
    lists: list[NDArray[np.float64]]


def cut_samples(text: bytes) -> CutText | None:
    """Cut the lists of samples out of the body of a request.

    Args:
        text: What should be JSON. Whether it is, is only known of the lists that were cut.

    Returns:
        The parts, or None where the text holds a list of samples that is not plainly good, or where
        the library is not there.
    """
    library = load()
    cut = library.at_once if len(text) <= SMALL_BYTES else library.aside
    if cut is None:
        return None
    # Sizes are the most that a text of this length can need; pages that are not used cost nothing.
    most_values, most_lists = len(text) // 2 + 1, len(text) // 3 + 1
    numbers = np.empty(most_values + most_lists + len(text) // 4 + 1, dtype=np.float64)
    address = numbers.ctypes.data
    ends_at, skeleton_at = most_values, most_values + most_lists
    length = ctypes.c_int64()
    found = cut(
        text,
        len(text),
        address + 8 * skeleton_at,
        ctypes.byref(length),
        address,
        address + 8 * ends_at,
    )
    if found < 0:
        return None
    ends = numbers[ends_at : ends_at + found].view(np.int64).tolist()
    skeleton = numbers[skeleton_at:].view(np.uint8)[: length.value].tobytes()
    bounds = pairwise([0, *ends])
    lists = [numbers[begin:end] for begin, end in bounds]
    return CutText(skeleton, lists)
