"""How much structure a JSON text may have: what becomes a Python object when it is read.

A pair of brackets takes two letters, and some hundred bytes of memory once it is read; twice that
where it is in an error. So a body of little else would take a hundred times its size. What brings
samples has many letters for each of its parts.
"""

from __future__ import annotations

from service.codecs.native.library import load
from service.errors import TooLargeError

FREE_PARTS = 128 * 1024
"""Parts that any body may have."""
LETTERS_A_PART = 8
"""A body may have so many parts more the larger it is: one for each so many bytes."""
MOST_MEMBERS = 4096
"""Members that one object may have; each may be an error of its own."""
# What is read in a few milliseconds, whatever it is.
_QUICK_BYTES = 64 * 1024
_QUICK_LISTS = 2048


def check_parts(skeleton: bytes, size: int) -> None:
    """Refuse a text with much beside its samples.

    Args:
        skeleton: The text without its samples; parts are its commas and opening brackets.
        size: Bytes of the whole text.

    Raises:
        TooLargeError: It has too many parts.
    """
    _check(_lists(skeleton) + skeleton.count(b","), size, "commas and opening brackets besides its")
    _check_members(skeleton)


def check_lists(text: bytes) -> None:
    """Refuse a text with many lists and objects, where what else it has may be samples.

    Raises:
        TooLargeError: It has too many of them.
    """
    _check(_lists(text), len(text), "opening brackets around")
    _check_members(text)


def is_quick(text: bytes) -> bool:
    """Whether a text can be read in a few milliseconds, whatever it says."""
    return len(text) <= _QUICK_BYTES and _lists(text) <= _QUICK_LISTS


def _lists(text: bytes) -> int:
    return text.count(b"[") + text.count(b"{")


def _check_members(text: bytes) -> None:
    count = load().most_members
    if count is None or len(text) <= MOST_MEMBERS:
        return
    members = count(text, len(text))
    if members > MOST_MEMBERS:
        raise TooLargeError(f"expected at most {MOST_MEMBERS} members in one object, got {members}")


def _check(parts: int, size: int, words: str) -> None:
    most = max(FREE_PARTS, size // LETTERS_A_PART)
    if parts > most:
        raise TooLargeError(
            f"expected at most {most} {words} samples in a body of {size} bytes, got {parts}; "
            "remove what nobody reads, or divide it over several"
        )
