"""How a job goes, in words that do not depend on where it runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from training.jobs.progress import Progress


class Phase(StrEnum):
    """Where a job is on its way."""

    PENDING = "pending"
    RUNNING = "running"
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class Cause(StrEnum):
    """Why a job failed, or does not start."""

    BAD_DATA = "bad data or configuration"
    CONFIGURATION = "pod configuration"
    DAMAGED = "damaged"
    DEADLINE = "deadline exceeded"
    ERROR = "error"
    EVICTED = "evicted"
    IMAGE_PULL = "image cannot be pulled"
    KILLED = "killed"
    LOST = "lost"
    NOT_CREATED = "pods cannot be created"
    NOT_STARTED = "pod does not start"
    OUT_OF_MEMORY = "out of memory"
    UNSCHEDULABLE = "no node fits"
    VOLUME = "volume cannot be mounted"


@dataclass(frozen=True)
class Problem:
    """What is wrong with a job.

    Attributes:
        cause: Which kind.
        message: What happened, with the words of whoever saw it, and how to mend it.
        lasting: Whether waiting does not help; a problem that has just begun may pass by itself.
    """

    cause: Cause
    message: str
    lasting: bool = True

    def __str__(self) -> str:
        return f"{self.cause}: {self.message}"


@dataclass(frozen=True)
class JobStatus:
    """A job at one moment.

    Attributes:
        run_id: Its name.
        backend: Where it runs.
        phase: How far it is; once succeeded or failed this does not change any more.
        created_at: When it was submitted.
        started_at: When it began, or None.
        finished_at: When it ended, or None.
        failed_attempts: How often it ended and was, or could be, started again.
        problem: Why it failed, or why it does not start; None where nothing is known to be wrong.
        progress: What the job itself last said, None where it has said nothing or was not asked.
    """

    run_id: str
    backend: str
    phase: Phase
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    failed_attempts: int = 0
    problem: Problem | None = None
    progress: Progress | None = None

    @property
    def finished(self) -> bool:
        """Whether it has ended, well or not."""
        return self.phase in (Phase.SUCCEEDED, Phase.FAILED)
