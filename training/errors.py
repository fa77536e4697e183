"""What can go wrong in training, as one tree of exceptions.

TrainingError
  DataError      data that cannot be trained on or tested with
  PlaceError     a path or URL that cannot be read from or written to as things stand
  StoreError     a store that did not answer as it should; a later try may
  ResumeError    a saved state that cannot be gone on from
    OtherRunError  it belongs to another run
  DivergedError  a loss that is no number any more
  PeerError      another process of the same run failed
  JobError       of training jobs: training/jobs/errors.py
"""

from __future__ import annotations


class TrainingError(Exception):
    """Base of all errors of the training package."""


class DataError(TrainingError):
    """Data too short, too sparse or of the wrong kind; the message says what was expected."""


class PlaceError(TrainingError):
    """A place that is missing, forbidden or wrongly written; asking again would not help."""


class StoreError(TrainingError):
    """A store that cannot be reached, or that failed; the same command may work later."""


class ResumeError(TrainingError):
    """The saved state of a run cannot be gone on from."""


class OtherRunError(ResumeError):
    """The saved state does not belong to the run that was asked for.

    Attributes:
        run_name: What its run is called, empty where it has no name.
    """

    def __init__(self, message: str, run_name: str) -> None:
        super().__init__(message)
        self.run_name = run_name


class DivergedError(TrainingError):
    """The loss stopped being a finite number; the weights are of no use any more."""


class PeerError(TrainingError):
    """Another process of the same run failed, so this one ends too.

    Attributes:
        status: Exit status of the process that failed, which this one takes over.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status
