"""Timing calls of different sizes turn by turn, so that a slow moment does not hit one alone."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

FEWEST_ROUNDS = 5
MOST_REPEATS = 4
"""Calls of a quick trial in one round."""
_REPEAT_SHARE = 0.2
"""Of the slowest trial's duration: what all calls of a trial in one round may take together."""

Key = TypeVar("Key", bound=Hashable)


def time_in_turns(
    trials: Mapping[Key, Callable[[], object]],
    seconds: float,
    *,
    clock: Callable[[], float] = time.perf_counter,
    on_progress: Callable[[float], None] = lambda _: None,
) -> dict[Key, Sequence[float]]:
    """Call every trial in rounds, in an order that is drawn anew for each, until time is up.

    Each is called twice before that, since a first call pays for what later ones share. Quick ones
    have up to four turns in a round: high quantiles want many calls.

    Args:
        trials: What to time, by a key.
        seconds: For all rounds; five are made in any case, and none is broken off.
        clock: Monotonic seconds.
        on_progress: Told what share of the time is spent, 0 to 1.

    Returns:
        Seconds of every call, by the key of its trial.
    """
    durations: dict[Key, list[float]] = {key: [] for key in trials}
    if not trials:
        return dict(durations)
    for trial in trials.values():
        trial()
    first = {key: _timed(trial, clock) for key, trial in trials.items()}
    allowed_s = _REPEAT_SHARE * max(first.values())
    turns = [
        key for key, duration_s in first.items() for _ in range(_repeats(duration_s, allowed_s))
    ]
    order = random.Random(0)
    begun_s, rounds = clock(), 0
    while rounds < FEWEST_ROUNDS or clock() - begun_s < seconds:
        order.shuffle(turns)
        for key in turns:
            durations[key].append(_timed(trials[key], clock))
        rounds += 1
        spent = (clock() - begun_s) / seconds if seconds > 0 else 1.0
        on_progress(min(1.0, spent, rounds / FEWEST_ROUNDS))
    return dict(durations)


def _repeats(duration_s: float, allowed_s: float) -> int:
    if duration_s * MOST_REPEATS <= allowed_s:
        return MOST_REPEATS
    return max(1, int(allowed_s / duration_s))


def _timed(call: Callable[[], object], clock: Callable[[], float]) -> float:
    begun_s = clock()
    call()
    return clock() - begun_s
