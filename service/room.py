"""Room for large bodies: how many bytes of them may be in work at a time.

A body of numbers takes many times its size while it is decoded, so a handful of large ones at once
could use up the memory that the whole process has. Small bodies pass without asking: there can be
no more of them than connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from service.errors import OverloadedError

# Bodies up to this size are small: read without asking for room, decoded in a few milliseconds.
SMALL_BYTES = 256 * 1024
_RETRY_AFTER_S = 1


class BodyRoom:
    """Bytes of large bodies in work; used from the event loop only.

    Attributes:
        turn: Held while a large body is decoded: one at a time, because decoding in parallel takes
            more memory and no less time.

    Args:
        most_bytes: Bytes that all large bodies in work may have together.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._taken_bytes = 0
        self.turn = asyncio.Lock()

    @property
    def taken_bytes(self) -> int:
        """Bytes of the large bodies that are in work now."""
        return self._taken_bytes

    @contextmanager
    def visit(self) -> Iterator[Visit]:
        """The stay of one request, from its first byte to its answer; its room is free after it."""
        visit = Visit(self)
        try:
            yield visit
        finally:
            self._taken_bytes -= visit.bytes

    def grow(self, visit: Visit, size: int) -> None:
        """Give a visit as much room as a body of `size` bytes needs.

        Raises:
            OverloadedError: The other bodies leave too little.
        """
        needed = size if size > SMALL_BYTES else 0
        more = needed - visit.bytes
        if more <= 0:
            return
        if self._taken_bytes + more > self._most_bytes:
            raise OverloadedError(
                f"large bodies with {self._taken_bytes} bytes are in work, and {size} more would "
                f"exceed the limit of {self._most_bytes}",
                _RETRY_AFTER_S,
            )
        self._taken_bytes += more
        visit.bytes += more


class Visit:
    """One request's share of the room."""

    def __init__(self, room: BodyRoom) -> None:
        self._room = room
        self.bytes = 0

    def grow(self, size: int) -> None:
        """Take as much room as a body of `size` bytes needs; see `BodyRoom.grow`."""
        self._room.grow(self, size)

    @property
    def turn(self) -> asyncio.Lock:
        """Held while a large body is decoded."""
        return self._room.turn
