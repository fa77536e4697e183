"""Where a reader of a log is, so that reading it again from before gives no line twice.

The API server can only be asked for lines since some seconds ago, so a connection that takes the
place of one that broke brings lines again. Each bears the time at which the kubelet took it, to the
nanosecond; several lines may bear the same.
"""

from __future__ import annotations

import re
from datetime import datetime

_STAMPED = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) ?(.*)", re.DOTALL
)


class Cursor:
    """The place after the last line that was taken."""

    def __init__(self) -> None:
        self._bound: tuple[int, int] | None = None
        self._at_bound = 0
        self._newest: tuple[int, int] | None = None
        self._at_newest = 0

    def restart(self) -> None:
        """A new connection begins: lines up to here may come again."""
        # The connection before may have broken while it still brought old lines.
        known = self._at_bound if self._bound == self._newest else 0
        self._bound, self._at_bound = self._newest, max(known, self._at_newest)
        self._at_newest = 0

    def take(self, line: str) -> str | None:
        """The text of a line, or None where it was taken before.

        A line without a stamp is passed on as it is.
        """
        match = _STAMPED.fullmatch(line)
        if match is None:
            return line
        base, fraction, zone, text = match.groups()
        offset = "+00:00" if zone == "Z" else zone
        second = int(datetime.fromisoformat(base + offset).timestamp())
        stamp = (second, int((fraction or "").ljust(9, "0")))
        if self._newest is None or stamp > self._newest:
            self._newest, self._at_newest = stamp, 0
        if stamp == self._newest:
            self._at_newest += 1
        if self._bound is None or stamp > self._bound:
            return str(text)
        if stamp < self._bound or self._at_newest <= self._at_bound:
            return None
        return str(text)
