"""Reads the logs of all pods of a run at once, each in a thread of its own, each line once.

A stream that breaks is taken up again where it was; of one that cannot be, the end tells why. What
became of the run is never learnt here.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from training.jobs.backend import PATIENCE_SECONDS, POLL_SECONDS, REFUSED_LOOKS, LogLine
from training.jobs.cluster.cursor import Cursor
from training.jobs.cluster.pods import ENDED, Pods, name_of, phase_of
from training.jobs.errors import BackendError, JobNotFoundError, NotAllowedError, SilentLogError

QUEUED_LINES = 10_000
MARGIN_SECONDS = 600
"""How much more is read again than the time since the last line; clocks and kubelets differ."""
BRIEF_SECONDS = 10.0
"""How long a log is tried to be read to which nothing will be added, or that is not followed."""


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
    lost: BackendError | None = None
    is_heard: bool = False

    def run(self) -> None:
        cursor, heard_at = Cursor(), None
        answered_at, refused = time.monotonic(), 0
        phase = "Pending"
        while not self.stop.is_set():
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
                        answered_at = heard_at = time.monotonic()
                        self.is_heard, refused = True, 0
                        text = cursor.take(line)
                        if text is not None:
                            self.emit(LogLine(self.name, text))
                # A pod that has not begun when the run is over never will.
                never = phase == "Pending" and was_over
                if phase in ENDED or never or not self.follow:
                    return
                answered_at = time.monotonic()
                # A log that was rotated, and a proxy that lost patience, end streams too.
                self.stop.wait(self.wait_seconds)
            except JobNotFoundError:
                return
            except BackendError as error:
                waits = self.follow and phase not in ENDED and not self.over.is_set()
                if waits and isinstance(error, SilentLogError):
                    # An epoch may take hours; the pod is there, or looking for it fails next.
                    answered_at = time.monotonic()
                    continue
                refused = refused + 1 if isinstance(error, NotAllowedError) else 0
                patience = PATIENCE_SECONDS if waits else BRIEF_SECONDS
                if (
                    _is_final(refused, answered=self.is_heard)
                    or time.monotonic() - answered_at >= patience
                ):
                    self.lost = error
                    return
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
        self._told = False
        self._error: Exception | None = None
        self._thread = threading.Thread(
            target=self._look_for_pods, name=f"logs of {pods.run_id}", daemon=True
        )
        self._thread.start()

    def __iter__(self) -> Iterator[LogLine]:
        """All lines until the run has ended and everything has been read.

        Raises:
            BackendError: The pods could not be looked for, a log could not be read to its end, or
                all of them are gone with their pods.
        """
        while (line := self._lines.get()) is not None:
            yield line
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """End reading; threads that wait for the server end with their next timeout."""
        self._stop.set()

    def _emit(self, line: LogLine | None) -> None:
        self._told = self._told or line is not None
        while True:
            try:
                self._lines.put(line, timeout=self._poll_seconds)
                return
            except queue.Full:
                if self._stop.is_set():
                    return

    def _look_for_pods(self) -> None:
        streams: dict[str, tuple[_Stream, threading.Thread]] = {}
        answered_at, refused = time.monotonic(), 0
        finished, names, answered = False, [], False
        try:
            while not self._stop.is_set():
                try:
                    finished = self._finished()
                    names = [name_of(pod) for pod in self._pods.found()]
                    answered_at, refused, answered = time.monotonic(), 0, True
                except BackendError as error:
                    refused = refused + 1 if isinstance(error, NotAllowedError) else 0
                    if _is_final(refused, answered=answered):
                        raise
                    if time.monotonic() - answered_at >= PATIENCE_SECONDS:
                        raise
                    self._stop.wait(self._poll_seconds)
                    continue
                for name in names:
                    if name not in streams:
                        streams[name] = self._begin(name)
                        if not self._follow:
                            streams[name][1].join()
                if finished or not self._follow:
                    self._over.set()
                    break
                self._stop.wait(self._poll_seconds)
            for _, thread in streams.values():
                thread.join()
            self._error = self._loss([stream for stream, _ in streams.values()])
            if finished and not names and not self._told and self._error is None:
                run_id = self._pods.run_id
                self._error = BackendError(
                    f"no pod of {run_id} is left, and its logs went with it; how it ended: "
                    f"rancast job status {run_id}"
                )
        except Exception as error:
            self._error = error
        finally:
            self._emit(None)

    def _loss(self, streams: Sequence[_Stream]) -> BackendError | None:
        """What could not be read, in one error: mostly it is the same for all pods.

        A pod that never said a word beside others that did is one that ended before it began.
        """
        lost = [stream for stream in streams if stream.lost is not None]
        if self._told:
            for stream in lost:
                if not stream.is_heard and not isinstance(stream.lost, NotAllowedError):
                    self._emit(LogLine(stream.name, f"cannot {stream.lost}"))
                    stream.lost = None
        errors = [stream.lost for stream in lost if stream.lost is not None]
        if not errors:
            return None
        others = f" (and {len(errors) - 1} more logs)" if len(errors) > 1 else ""
        return type(errors[0])(f"{errors[0]}{others}")

    def _begin(self, name: str) -> tuple[_Stream, threading.Thread]:
        stream = _Stream(
            self._pods, name, self._emit, self._stop, self._over, self._follow, self._poll_seconds
        )
        thread = threading.Thread(target=stream.run, name=f"log of {name}", daemon=True)
        thread.start()
        return stream, thread


def _is_final(refused: int, *, answered: bool) -> bool:
    """Whether so many refusals in a row are no server's that has just started."""
    return refused > (REFUSED_LOOKS if answered else 0)
