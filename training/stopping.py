"""Signals that stop a run, held back until a step is whole.

What an interrupt leaves in the middle of a step, or of judging one, is no state to go on from.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class HeldStops:
    """While it is entered, in the main thread, the first SIGINT or SIGTERM waits for `check`.

    A second SIGINT interrupts at once: somebody does not want to wait. A second SIGTERM does not.
    """

    def __init__(self) -> None:
        self._is_asked = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> HeldStops:
        if threading.current_thread() is threading.main_thread():
            self._before = {each: signal.signal(each, self._note) for each in _SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)

    def check(self) -> None:
        """Stop here, if that was asked for.

        Raises:
            KeyboardInterrupt: It was.
        """
        if self._is_asked:
            raise KeyboardInterrupt

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self._is_asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        self._is_asked = True
