"""Where a simulation stands, kept in the output directory so that the next run goes on from there.

Only the place is kept. Every number and every fault is a function of the seed and the period, so
nothing else is needed to continue, late files on their way included.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from training.simulate.errors import DirectoryError
from training.simulate.options import SimulateOptions
from training.simulate.writer import write_whole

# The leading point keeps readers of the directory away from it.
STATE_NAME = ".simulation.json"
_FORMAT = 1
# These may differ from run to run: they say how long and how fast, not what is in the files.
_FREE = ("out", "days", "periods", "speed", "keep_days", "start")


@dataclass(frozen=True, slots=True)
class State:
    """Progress of one output directory.

    Attributes:
        first: Index of the first period of the history.
        live: Index of the first live period, which ends the history.
        next: Index of the next period that is due.
        identity: Options that decide what is in the files.
    """

    first: int
    live: int
    next: int
    identity: dict[str, Any]

    def at(self, period: int) -> State:
        """The state when all periods before `period` are written."""
        return replace(self, next=period)

    def save(self, out: Path) -> None:
        """Write the state, whole or not at all."""
        document = {"format": _FORMAT, **asdict(self)}
        write_whole(out / STATE_NAME, json.dumps(document, indent=1).encode())


def identity(options: SimulateOptions) -> dict[str, Any]:
    """The options that decide what is in the files, as JSON knows them."""
    kept = {k: v for k, v in asdict(options).items() if k not in _FREE}
    document: dict[str, Any] = json.loads(json.dumps(kept))
    return document


def open_state(options: SimulateOptions, now_ms: int) -> State:
    """The state of the output directory, or a new one where the directory is empty or missing.

    Args:
        options: What is to be simulated.
        now_ms: Where a new history ends, unless `options.start` says where it begins.

    Raises:
        DirectoryError: The directory holds other files, a state that cannot be read, or a
            simulation with other options.
    """
    path = options.out / STATE_NAME
    if path.is_file():
        return _continued(path, options)
    if options.out.exists() and (not options.out.is_dir() or any(options.out.iterdir())):
        raise DirectoryError(
            f"{options.out}: expected an empty directory or one that a simulation wrote, found "
            "other files; choose another directory"
        )
    periods = options.history_periods
    if options.start is None:
        live = now_ms // options.period_ms
        first = live - periods
    else:
        first = int(options.start.timestamp() * 1000) // options.period_ms
        live = first + periods
    if first < 0:
        raise DirectoryError(
            f"{options.out}: a history of {options.days} days would begin before 1970"
        )
    return State(first, live, first, identity(options))


def _continued(path: Path, options: SimulateOptions) -> State:
    try:
        document = json.loads(path.read_bytes())
        if document.pop("format") != _FORMAT:
            raise ValueError("unknown format")
        state = State(**document)
        if not state.first <= state.next or not state.first <= state.live:
            raise ValueError("periods out of order")
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise DirectoryError(
            f"{path}: expected the state of a simulation, found {error}; choose another directory"
        ) from error
    wanted = identity(options)
    if differing := sorted(k for k in wanted if wanted[k] != state.identity.get(k)):
        was = ", ".join(f"{k} was {state.identity.get(k)}, is {wanted[k]}" for k in differing)
        raise DirectoryError(
            f"{options.out}: expected the options that the directory was begun with, but {was}; "
            "use those, or another directory"
        )
    return state
