"""What can go wrong with KPI data, as one tree of exceptions.

KpiError
  CatalogueError       a catalogue file that cannot be used
  UnreadableFileError  a file that no reader can make sense of, or that breaks a bound
  NothingSelectedError files without anything that was asked for
  UnknownCellError     a cell that the store does not hold
  JournalError         the journal cannot keep what was acknowledged
"""

from __future__ import annotations


class KpiError(Exception):
    """Base of all errors about KPI data."""


class CatalogueError(KpiError):
    """A catalogue file that cannot be used; the message says which entry and what was expected."""


class UnreadableFileError(KpiError):
    """A file that cannot be read as observations.

    Attributes:
        path: The file (or the name of the stream).
        reason: What was expected, what came, and how to mend it.
    """

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = str(path)
        self.reason = reason


class NothingSelectedError(KpiError):
    """Files that hold nothing of what was asked for."""


class UnknownCellError(KpiError):
    """A cell, or a cell at this step, that the store does not hold."""


class JournalError(KpiError):
    """The journal could not be written or read; nothing of the batch was acknowledged."""
