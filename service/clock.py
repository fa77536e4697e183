"""Time as the service sees it: one object that tests replace.

Deadlines follow the monotonic clock, which never steps back; stamps and data ages follow the wall
clock. No other module of the service reads a clock.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A pending call."""

    def cancel(self) -> None:
        """Forget the call; nothing happens where it was already made."""


class Clock(Protocol):
    """The two clocks, and calls at an instant of the monotonic one."""

    def monotonic_s(self) -> float:
        """Seconds on a clock that only grows; its zero means nothing."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01T00:00Z."""

    def call_at(self, instant_s: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` on the running event loop once `monotonic_s` reaches `instant_s`."""


class SystemClock:
    """The machine's clocks."""

    def monotonic_s(self) -> float:
        """Seconds on a clock that only grows; its zero means nothing."""
        return time.monotonic()

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01T00:00Z."""
        return time.time_ns() // 1_000_000

    def call_at(self, instant_s: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` on the running event loop once `monotonic_s` reaches `instant_s`."""
        delay_s = max(0.0, instant_s - time.monotonic())
        return asyncio.get_running_loop().call_later(delay_s, callback)
