"""What can go wrong in training, as one tree of exceptions.

TrainingError
  DataError      data that cannot be trained on or tested with
  ResumeError    a saved state that belongs to another run
  DivergedError  a loss that is no number any more
"""

from __future__ import annotations


class TrainingError(Exception):
    """Base of all errors of the training package."""


class DataError(TrainingError):
    """Data too short, too sparse or of the wrong kind; the message says what was expected."""


class ResumeError(TrainingError):
    """The saved state of a run does not belong to the run that was asked for."""


class DivergedError(TrainingError):
    """The loss stopped being a finite number; the weights are of no use any more."""
