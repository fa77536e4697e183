"""What can go wrong when a network is simulated.

SimulateError
  OptionError     an option that makes no network, or no files
  DirectoryError  an output directory that cannot be continued
"""

from __future__ import annotations


class SimulateError(Exception):
    """Base of all errors of the simulator."""


class OptionError(SimulateError, ValueError):
    """An option out of its range; the message says what was expected and what came."""


class DirectoryError(SimulateError):
    """The output directory holds something that this simulation must not add to."""
