"""Where the lines of a logger go: straight to a stream, or to a thread that writes them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TextIO

from service.line_writer import LineWriter

# Enough for a reader that reads; whoever waits for the process to end waits for no other.
_PATIENCE_S = 2.0


class LineHandler(logging.StreamHandler[TextIO]):
    """Writes each record as one line."""

    _writer: LineWriter | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write it here, or hand it to the thread that writes."""
        if self._writer is None:
            super().emit(record)
            return
        try:
            self._writer.put(self.format(record))
        except Exception:
            self.handleError(record)

    def hand_over(self, writer: LineWriter | None) -> None:
        """Have this thread write from now on; None has whoever logs write itself."""
        self._writer = writer


@contextmanager
def written_elsewhere(
    loggers: dict[str, logging.Logger], on_dropped: Callable[[str, int], None]
) -> Iterator[None]:
    """Have threads write the lines of these loggers until the block ends; then all are written.

    Args:
        loggers: By a name of their stream.
        on_dropped: Called with that name and a number of lines that are dropped.
    """
    handed: list[tuple[LineHandler, LineWriter]] = []
    for name, logger in loggers.items():
        for handler in logger.handlers:
            if isinstance(handler, LineHandler):
                writer = LineWriter(handler.stream, on_dropped=partial(on_dropped, name))
                handler.hand_over(writer)
                handed.append((handler, writer))
    try:
        yield
    finally:
        for handler, writer in handed:
            # Where nobody reads, the lines to come are dropped too: they must not stop the end.
            if writer.close(_PATIENCE_S):
                handler.hand_over(None)
