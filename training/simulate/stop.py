"""A request to stop that may come from a signal handler as well as from another thread."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import FrameType


class Stop:
    """Like `threading.Event`, but safe to set in a signal handler.

    A handler runs in the main thread between two of its instructions. Where that thread is just
    within `Event.wait`, it holds the lock that `Event.set` needs, and both wait for ever.
    `SimpleQueue.put` is reentrant and takes no such lock.
    """

    def __init__(self) -> None:
        self._wakes: SimpleQueue[None] = SimpleQueue()
        self._is_set = False

    def set(self) -> None:
        """Ask for the stop, and end a wait."""
        self._is_set = True
        self._wakes.put(None)

    def is_set(self) -> bool:
        """Whether anybody has asked."""
        return self._is_set

    def wait(self, timeout_seconds: float) -> bool:
        """Wait until somebody asks, at most so long; whether somebody has asked."""
        if not self._is_set:
            try:
                self._wakes.get(timeout=min(timeout_seconds, threading.TIMEOUT_MAX))
            except Empty:
                return self._is_set
        return True


@contextmanager
def stop_on_signals(stop: Stop) -> Iterator[None]:
    """Let SIGINT and SIGTERM set `stop` within the block; only the main thread may ask for that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
