"""Lines of a log file: its last ones, and those that are still to come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

TAIL_BYTES = 65_536


def last_lines(path: Path, most_bytes: int = TAIL_BYTES) -> list[str]:
    """The last whole lines of a file, within a number of bytes; none where there is no file."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - most_bytes))
            data = file.read()
    except FileNotFoundError:
        return []
    lines = data.decode("utf-8", errors="replace").splitlines()
    return lines[1:] if size > most_bytes else lines


def follow_file(path: Path, ended: Callable[[], bool], look_seconds: float) -> Iterator[str]:
    """The lines of a file as they are written.

    Args:
        path: The file.
        ended: Whether nobody writes to it any more; what is there by then is still read.
        look_seconds: Between two looks at a file that has not grown.
    """
    rest = b""
    with path.open("rb") as file:
        while True:
            last = ended()
            rest += file.read()
            *lines, rest = rest.split(b"\n")
            yield from (line.decode("utf-8", errors="replace") for line in lines)
            if last:
                break
            time.sleep(look_seconds)
    if rest:
        yield rest.decode("utf-8", errors="replace")
