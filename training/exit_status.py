"""What the exit status of a training command says: whether trying again may help.

Whoever starts such a command again by itself, a Kubernetes Job above all, gives up at once on
`BAD_INPUT` (`podFailurePolicy`, action FailJob on exit code 42).
"""

from __future__ import annotations

from kpi.errors import JournalError, KpiError
from model.errors import ModelError
from training.errors import DataError, DivergedError, PeerError, PlaceError, ResumeError

FAILED = 2
"""Anything else that is told in one line: a full disk, a store that does not answer."""

BAD_INPUT = 42
"""Data or settings that no repetition mends."""

STOPPED = 130
"""Stopped by hand."""

_BAD = (KpiError, ModelError, DataError, PlaceError, ResumeError, DivergedError, ValueError)


def status_of(error: BaseException) -> int:
    """Exit status of a training command that ended with this error."""
    if isinstance(error, PeerError):
        return error.status
    if isinstance(error, KeyboardInterrupt):
        return STOPPED
    is_bad = isinstance(error, _BAD) and not isinstance(error, JournalError)
    return BAD_INPUT if is_bad else FAILED
