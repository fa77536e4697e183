"""Signals that stop a run: SIGTERM as Ctrl-C does, and both only once a step is whole.

What an interrupt leaves in the middle of a step, or of judging one, is no state to go on from.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, NoReturn

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt at the first SIGTERM; further ones do not disturb the saving.

    Whoever takes a machine away, Kubernetes above all, sends SIGTERM and waits a while: time enough
    to save the state, which a minute of training may not be in yet. Only the main thread may say
    what signals do; in others nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    is_asked = False

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal is_asked
        if not is_asked:
            is_asked = True
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class HeldStops:
    """While it is entered, in the main thread, the first SIGINT or SIGTERM waits for `stop`.

    Those are held back that have a handler. A second SIGINT interrupts at once: somebody does not
    want to wait. A second SIGTERM does not.
    """

    def __init__(self) -> None:
        self._asked_by: int | None = None
        self._before: dict[int, Any] = {}

    @property
    def is_asked(self) -> bool:
        """Whether this process was asked to stop."""
        return self._asked_by is not None

    def __enter__(self) -> HeldStops:
        if threading.current_thread() is threading.main_thread():
            for each in _SIGNALS:
                if callable(signal.getsignal(each)):
                    self._before[each] = signal.signal(each, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)

    def stop(self) -> NoReturn:
        """Do what the signal does that was held back, or SIGTERM where another process had it.

        Raises:
            KeyboardInterrupt: Always.
        """
        number = self._asked_by or signal.SIGTERM
        if number in self._before:
            self._before[number](number, None)
        raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.is_asked and number == signal.SIGINT:
            self._before[number](number, frame)
        self._asked_by = self._asked_by or number
