"""Reads the logs of all pods of a run at once, each in a thread of its own, each line once.

It does its best: a stream that breaks is taken up again where it was, and one that cannot be is
given up. What became of the run is never learnt here.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from training.jobs.backend import POLL_SECONDS, LogLine
from training.jobs.cluster.cursor import Cursor
from training.jobs.cluster.pods import ENDED, Pods, name_of, phase_of
from training.jobs.errors import BackendError, JobNotFoundError

QUEUED_LINES = 10_000
MARGIN_SECONDS = 600
"""How much more is read again than the time since the last line; clocks and kubelets differ."""
MOST_FAILURES = 30
"""Failures in a row after which a pod's log is given up."""


@dataclass
class _Stream:
    """One pod's log, read to its end."""

    pods: Pods
    name: str
    emit: Callable[[LogLine], None]
    stop: threading.Event
    over: threading.Event
    follow: bool
    wait_seconds: float

    def run(self) -> None:
        cursor, failures, heard_at = Cursor(), 0, None
        while not self.stop.is_set() and failures < MOST_FAILURES:
            since = None
            if heard_at is not None:
                since = math.ceil(time.monotonic() - heard_at) + MARGIN_SECONDS
            try:
                was_over = self.over.is_set()
                # Asked before: once it has ended, a stream that ends has brought everything.
                phase = self._phase()
                if phase != "Pending":
                    cursor.restart()
                    for line in self._lines(since, follow=self.follow and phase not in ENDED):
                        failures, heard_at = 0, time.monotonic()
                        text = cursor.take(line)
                        if text is not None:
                            self.emit(LogLine(self.name, text))
                # A pod that has not begun when the run is over never will.
                never = phase == "Pending" and was_over
                if phase in ENDED or never or not self.follow:
                    return
                # A log that was rotated, and a proxy that lost patience, end streams too.
                self.stop.wait(self.wait_seconds)
            except JobNotFoundError:
                return
            except BackendError:
                failures += 1
                self.stop.wait(self.wait_seconds)

    def _phase(self) -> str:
        for pod in self.pods.found():
            if name_of(pod) == self.name:
                return phase_of(pod)
        raise JobNotFoundError(self.name)

    def _lines(self, since: int | None, *, follow: bool) -> Iterator[str]:
        """Whole lines; what is cut off by a broken stream comes again with the next one."""
        rest = b""
        for piece in self.pods.chunks(self.name, follow=follow, since_seconds=since):
            if self.stop.is_set():
                return
            *lines, rest = (rest + piece).split(b"\n")
            yield from (line.decode("utf-8", errors="replace") for line in lines)
        if rest:
            yield rest.decode("utf-8", errors="replace")


class LogFollower:
    """The lines of a run's pods while it goes on.

    Iterate over it from one thread; `close` may be called from any.
    """

    def __init__(
        self,
        pods: Pods,
        finished: Callable[[], bool],
        *,
        follow: bool = True,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        """Begin to read.

        Args:
            pods: Of the run.
            finished: Whether the run has ended; asked from a thread of the follower's.
            follow: Wait for lines that are still to come. Otherwise one pod is read after another.
            poll_seconds: Between two looks for new pods, and before a stream is taken up again.
        """
        self._pods = pods
        self._finished = finished
        self._follow = follow
        self._poll_seconds = poll_seconds
        self._stop, self._over = threading.Event(), threading.Event()
        self._lines: queue.Queue[LogLine | None] = queue.Queue(QUEUED_LINES)
        self._error: Exception | None = None
        self._thread = threading.Thread(
            target=self._look_for_pods, name=f"logs of {pods.run_id}", daemon=True
        )
        self._thread.start()

    def __iter__(self) -> Iterator[LogLine]:
        """All lines until the run has ended and everything has been read.

        Raises:
            BackendError: The pods could not even be looked for.
        """
        while (line := self._lines.get()) is not None:
            yield line
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """End reading; threads that wait for the server end with their next timeout."""
        self._stop.set()

    def _emit(self, line: LogLine | None) -> None:
        while True:
            try:
                self._lines.put(line, timeout=self._poll_seconds)
                return
            except queue.Full:
                if self._stop.is_set():
                    return

    def _look_for_pods(self) -> None:
        streams: dict[str, threading.Thread] = {}
        failures = 0
        try:
            while not self._stop.is_set():
                try:
                    finished = self._finished()
                    names = [name_of(pod) for pod in self._pods.found()]
                    failures = 0
                except BackendError:
                    failures += 1
                    if failures >= MOST_FAILURES:
                        raise
                    self._stop.wait(self._poll_seconds)
                    continue
                for name in names:
                    if name not in streams:
                        streams[name] = self._begin(name)
                        if not self._follow:
                            streams[name].join()
                if finished or not self._follow:
                    self._over.set()
                    break
                self._stop.wait(self._poll_seconds)
            for thread in streams.values():
                thread.join()
        except Exception as error:
            self._error = error
        finally:
            self._emit(None)

    def _begin(self, name: str) -> threading.Thread:
        stream = _Stream(
            self._pods, name, self._emit, self._stop, self._over, self._follow, self._poll_seconds
        )
        thread = threading.Thread(target=stream.run, name=f"log of {name}", daemon=True)
        thread.start()
        return thread
