"""Where training jobs run: one protocol, kept by every implementation.

`tests/training/jobs/contract.py` says in tests what each of them has to do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from training.jobs.errors import BackendError, NotAllowedError
from training.jobs.spec import JobSpec
from training.jobs.status import JobStatus

PATIENCE_SECONDS = 600.0
"""How long an answer is waited for once there was one; an update of a server takes minutes."""

REFUSED_LOOKS = 10
"""So many looks in a row may be refused: a server that has just started does not know all yet."""

POLL_SECONDS = 2.0


@dataclass(frozen=True)
class LogLine:
    """A line that a job printed.

    Attributes:
        source: Who printed it: a pod, or an attempt of a local job.
        text: The line, without its end.
    """

    source: str
    text: str


@dataclass(frozen=True)
class Submission:
    """What a submit came to.

    Attributes:
        status: Of the job.
        fresh: Whether it was submitted now; False where the same job had been before.
    """

    status: JobStatus
    fresh: bool


class TrainingBackend(Protocol):
    """Where jobs run. Nothing is kept in memory: another process finds the same jobs.

    All methods raise `BackendError` where what runs the jobs cannot be reached or refuses.
    """

    @property
    def name(self) -> str:
        """What the backend is called on the command line."""

    def submit(self, spec: JobSpec) -> Submission:
        """Start a job; the same one twice is one job.

        Raises:
            JobSpecError: This backend cannot run such a job.
            JobConflictError: Another job has the run id, or its removal is still under way.
        """

    def list(self) -> tuple[JobStatus, ...]:
        """All jobs that are known, the newest first; without their progress."""

    def status(self, run_id: str) -> JobStatus:
        """How a job goes, with what it last said of its progress.

        Raises:
            JobNotFoundError: There is none.
        """

    def logs(
        self, run_id: str, *, follow: bool = False
    ) -> AbstractContextManager[Iterator[LogLine]]:
        """The lines of every attempt of a job, each once, in the order in which each printed them.

        They are for reading: a stream may lose its end with its pod. Leaving the context ends
        whatever reads them.

        Args:
            run_id: The job.
            follow: Wait for more until the job has ended.

        Raises:
            JobNotFoundError: There is none.
        """

    def cancel(self, run_id: str) -> None:
        """End a job and remove it with its logs; what it has written stays.

        Done where there is none. It returns once this is under way: until the processes are gone,
        `status` says STOPPING.
        """


def wait_for(
    backend: TrainingBackend,
    run_id: str,
    enough: Callable[[JobStatus], bool],
    *,
    poll_seconds: float = POLL_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[JobStatus]:
    """Ask for a job's status again and again; the last one is the first that is enough.

    Once there was an answer, looks may fail for a while: a cluster restarts its servers while jobs
    go on.

    Raises:
        JobNotFoundError: There is no such job, or no more.
        BackendError: The backend cannot be asked, or no more.
    """
    answered_at, refused = None, 0
    while True:
        try:
            status = backend.status(run_id)
        except BackendError as error:
            refused = refused + 1 if isinstance(error, NotAllowedError) else 0
            if answered_at is None or refused > REFUSED_LOOKS:
                raise
            if clock() - answered_at > PATIENCE_SECONDS:
                raise
            sleep(poll_seconds)
            continue
        answered_at, refused = clock(), 0
        yield status
        if enough(status):
            return
        sleep(poll_seconds)
