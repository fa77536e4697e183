"""Structured log lines: `ts=… level=… logger=… event=… key=value`.

One line an event, whatever the values hold: quotes, line breaks and everything else that does not
print are escaped, so that a cell's name or a client's text can neither forge a line nor command the
terminal that shows it.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import TextIO

from service.line_handler import LineHandler

_FIELDS = "rancast_fields"
_PAIRS = re.compile(r"\w+=")


class KeyValueFormatter(logging.Formatter):
    """Formats a record as key=value pairs on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record's time, level, logger, event, fields and, where there is one, exception."""
        stamp = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        pairs: dict[str, object] = {
            "ts": stamp.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        message = record.getMessage()
        # `kpi` writes its lines as pairs already; they are not quoted a second time.
        ready = "" if not _PAIRS.match(message) else " " + _printable(message)
        if not ready:
            pairs["event"] = message
        pairs.update(getattr(record, _FIELDS, {}))
        if record.exc_info:
            pairs["exception"] = self.formatException(record.exc_info)
        return " ".join(f"{key}={_value(value)}" for key, value in pairs.items()) + ready


def log_event(logger: logging.Logger, level: int, event: str, **fields: object) -> None:
    """Write one event with its fields; the event is a short name such as `ready`."""
    logger.log(level, event, extra={_FIELDS: fields}, stacklevel=2)


def log_failure(logger: logging.Logger, event: str, error: BaseException, **fields: object) -> None:
    """Write one event at level error, with the exception and its traceback."""
    logger.error(event, exc_info=error, extra={_FIELDS: fields}, stacklevel=2)


def configure_logging(level: str, stream: TextIO | None = None) -> None:
    """Send every logger's lines to `stream` (standard error by default) as key=value pairs."""
    handler = LineHandler(stream or sys.stderr)
    handler.setFormatter(KeyValueFormatter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    text = "null" if value is None else str(value)
    plain = text and text.isprintable() and not any(c in text for c in ' "=\\')
    return text if plain else _printable(json.dumps(text, ensure_ascii=False))


def _printable(text: str) -> str:
    """The text with everything that does not print as an escape; JSON leaves most of it alone."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
