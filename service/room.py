"""Room for bodies: how many bytes of them may be in work at a time.

A body of numbers takes many times its size while it is decoded, so a handful of large ones at once
could use up the memory that the whole process has, and so could thousands of small ones whose
clients fall silent. Small and large ones have room of their own, so that bulk leaves the small ones
theirs. Tiny bodies, a request of a control loop, pass without asking: there can be no more of them
than connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from service.errors import OverloadedError

# Bodies up to this size are tiny: read without asking for room.
TINY_BYTES = 16 * 1024
# Bodies up to this size are small: decoded in a few milliseconds.
SMALL_BYTES = 256 * 1024
_RETRY_AFTER_S = 1


class BodyRoom:
    """Bytes of bodies in work; used from the event loop only.

    Attributes:
        turn: Held while a large body is decoded: one at a time, because decoding in parallel takes
            more memory and no less time.

    Args:
        most_bytes: Bytes that all large bodies in work may have together.
        most_small_bytes: Bytes that all small ones may have; half as many by default.
    """

    def __init__(self, most_bytes: int, most_small_bytes: int | None = None) -> None:
        small = most_bytes // 2 if most_small_bytes is None else most_small_bytes
        self._large = _Share("large", most_bytes)
        self._small = _Share("small", small)
        self.turn = asyncio.Lock()

    @property
    def taken_bytes(self) -> int:
        """Bytes of the bodies that are in work now, without the tiny ones."""
        return self._large.taken_bytes + self._small.taken_bytes

    @contextmanager
    def visit(self) -> Iterator[Visit]:
        """The stay of one request, from its first byte to its answer; its room is free after it."""
        visit = Visit(self)
        try:
            yield visit
        finally:
            if visit.share is not None:
                visit.share.taken_bytes -= visit.bytes

    def grow(self, visit: Visit, size: int) -> None:
        """Give a visit as much room as a body of `size` bytes needs.

        Raises:
            OverloadedError: The other bodies leave too little.
        """
        if size <= max(TINY_BYTES, visit.bytes):
            return
        share = self._small if size <= SMALL_BYTES else self._large
        held = visit.bytes if share is visit.share else 0
        share.take(size - held, size)
        if visit.share is not None and visit.share is not share:
            visit.share.taken_bytes -= visit.bytes
        visit.share, visit.bytes = share, size


@dataclass(slots=True)
class _Share:
    """Room of bodies of one kind."""

    kind: str
    most_bytes: int
    taken_bytes: int = 0

    def take(self, more: int, size: int) -> None:
        if self.taken_bytes + more > self.most_bytes:
            raise OverloadedError(
                f"{self.kind} bodies with {self.taken_bytes} bytes are in work, and {size} more "
                f"would exceed the limit of {self.most_bytes}",
                _RETRY_AFTER_S,
            )
        self.taken_bytes += more


class Visit:
    """One request's share of the room.

    Attributes:
        share: Where it has room, None where it needs none.
        bytes: How much.
    """

    def __init__(self, room: BodyRoom) -> None:
        self._room = room
        self.share: _Share | None = None
        self.bytes = 0

    def grow(self, size: int) -> None:
        """Take as much room as a body of `size` bytes needs; see `BodyRoom.grow`."""
        if size > TINY_BYTES:
            self._room.grow(self, size)

    @property
    def turn(self) -> asyncio.Lock:
        """Held while a large body is decoded."""
        return self._room.turn
