"""Files that are read again when they change: tokens, certificates.

Looked at, not watched: a mounted Kubernetes secret changes by a link that turns to another folder,
which notifications of the file itself do not tell.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from service.errors import ServiceError
from service.logs import log_event, log_failure
from service.metrics import Metrics

_LOGGER = logging.getLogger(__name__)


class Reloadable(Protocol):
    """Whatever comes from files and can be read again."""

    def reload(self) -> None:
        """Read the files; raise `ServiceError` and keep what was, where they cannot be used."""


@dataclass(slots=True)
class WatchedFiles:
    """Something that is read again when its files change.

    Attributes:
        kind: Value of the metric's label `kind`, and of the log's field.
        paths: The files.
        target: Reads them.
    """

    kind: str
    paths: Sequence[Path]
    target: Reloadable
    _seen: tuple[object, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._seen = self._look()

    def changed(self) -> bool:
        """Whether a file differs from the last look."""
        seen = self._look()
        changed, self._seen = seen != self._seen, seen
        return changed

    def forget(self) -> None:
        """Take the next look for a change, whatever the files are."""
        self._seen = ()

    def _look(self) -> tuple[object, ...]:
        return tuple(fingerprint(path) for path in self.paths)


class Reloads:
    """Looks at files from time to time; a file that cannot be used changes nothing.

    Args:
        watched: What is looked at.
        poll_seconds: Time between two looks.
        metrics: Counts.
    """

    def __init__(
        self, watched: Sequence[WatchedFiles], poll_seconds: float, metrics: Metrics
    ) -> None:
        self._watched = watched
        self._poll_seconds = poll_seconds
        self._metrics = metrics
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look from now on."""
        if self._watched:
            self._task = asyncio.create_task(self._run(), name="reloads")

    async def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def look(self) -> None:
        """Look once, and read what has changed.

        What goes wrong with one item keeps no other from being looked at, now or later.
        """
        for watched in self._watched:
            try:
                await self._look_at(watched)
            except ServiceError as error:
                log_event(_LOGGER, logging.ERROR, "reload_failed", kind=watched.kind, reason=error)
                self._metrics.count_reload(watched.kind, usable=False)
            except Exception as error:
                # No fault of the files, so it may go well with the same ones.
                watched.forget()
                log_failure(_LOGGER, "reload_failed", error, kind=watched.kind)
                self._metrics.count_reload(watched.kind, usable=False)

    async def _look_at(self, watched: WatchedFiles) -> None:
        if not await asyncio.to_thread(watched.changed):
            return
        await asyncio.to_thread(watched.target.reload)
        log_event(_LOGGER, logging.INFO, "reloaded", kind=watched.kind)
        self._metrics.count_reload(watched.kind, usable=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._poll_seconds)
            await self.look()


def fingerprint(path: Path) -> object:
    """Something that differs once the file has changed; the error's number where there is none."""
    try:
        found = path.stat()
    except OSError as error:
        return error.errno
    return found.st_ino, found.st_size, found.st_mtime_ns
