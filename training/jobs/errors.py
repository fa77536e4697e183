"""What can go wrong with training jobs, as one tree of exceptions.

TrainingError
  JobError
    JobSpecError      a job that cannot be run as it was asked for
    JobNotFoundError  no job of this run id
    JobConflictError  another job has this run id
    BackendError      where jobs run cannot be reached, or refuses
      NotAllowedError   whoever asks may not, or is not known; asking again does not help
      SilentLogError    a log that is followed has brought nothing for a while
"""

from __future__ import annotations

from training.errors import TrainingError


class JobError(TrainingError):
    """Base of all errors of training jobs."""


class JobSpecError(JobError, ValueError):
    """A job that cannot be run as it was asked for; the message says what was expected."""


class JobNotFoundError(JobError):
    """There is no job of this run id; it was cancelled, or has been removed since it ended."""


class JobConflictError(JobError):
    """Another job has this run id, or the one that had it is still being removed."""


class BackendError(JobError):
    """Where jobs run cannot be reached, or refuses; the message says what it answered."""


class NotAllowedError(BackendError):
    """Whoever asks may not, or is not known there; asking again does not help."""


class SilentLogError(BackendError):
    """A log that is followed has brought nothing for a while; it may still bring more."""
