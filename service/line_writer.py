"""Lines that a thread of their own writes, so that a stream that nobody reads stops nobody.

A pipe whose reader has stopped blocks whoever writes to it, and a log is written by everyone. Here
lines wait, bounded in bytes, for a thread that may block; beyond the bound they are dropped and
counted.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Callable
from typing import TextIO

MOST_BYTES = 4 * 1024 * 1024
# Written at a time, so that room comes free as a slow reader goes on.
_PIECE_BYTES = 64 * 1024


class LineWriter:
    """Writes lines to one stream; safe from any thread.

    Args:
        stream: Where they go: to its descriptor, past its buffer, where it has one. A thread that
            is blocked in a buffer would keep the process from ending.
        most_bytes: Bytes that may wait.
        on_dropped: Called with a number of lines that are dropped.
    """

    def __init__(
        self,
        stream: TextIO,
        most_bytes: int = MOST_BYTES,
        on_dropped: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._write = _write_to(stream)
        self._most_bytes = most_bytes
        self._on_dropped = on_dropped
        self._lines: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._is_closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    @property
    def waiting_bytes(self) -> int:
        """Bytes that are not written yet."""
        return self._waiting_bytes

    def put(self, line: str) -> None:
        """Have a line written; returns at once."""
        data = line.encode("utf-8", errors="backslashreplace") + b"\n"
        with self._changed:
            fits = self._waiting_bytes + len(data) <= self._most_bytes and not self._is_closing
            if fits:
                self._lines.append(data)
                self._waiting_bytes += len(data)
                self._changed.notify()
        if not fits:
            self._on_dropped(1)

    def close(self, patience_s: float) -> bool:
        """Write what waits and end the thread; False where nobody reads for so long.

        Lines that are put later are dropped.
        """
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join(patience_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while lines := self._next_lines():
            piece = b"".join(lines)
            try:
                self._write(piece)
            except (OSError, ValueError):  # the reader has gone, or the stream is closed
                self._on_dropped(len(lines))
            with self._changed:
                self._waiting_bytes -= len(piece)

    def _next_lines(self) -> list[bytes]:
        """As many as are written at a time; none at the end."""
        with self._changed:
            while not self._lines:
                if self._is_closing:
                    return []
                self._changed.wait()
            lines = [self._lines.popleft()]
            size = len(lines[0])
            while self._lines and size + len(self._lines[0]) <= _PIECE_BYTES:
                lines.append(self._lines.popleft())
                size += len(lines[-1])
            return lines


def _write_to(stream: TextIO) -> Callable[[bytes], object]:
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):  # a stream in memory
        return lambda data: stream.write(data.decode())
    stream.flush()

    def write(data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(descriptor, rest) :]
            except BlockingIOError:  # whoever shares the stream has made it so
                select.select([], [descriptor], [])

    return write
