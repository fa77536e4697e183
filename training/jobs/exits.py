"""What the exit status of a job's process means."""

from __future__ import annotations

import signal

from training.jobs.status import Cause, Problem

BAD_DATA = 42
"""Exit status of a run whose data or configuration are no good: trying again would not help."""

SIGNALS = 128
"""A shell, and a container, tell of a process ended by signal N as exit status 128 + N."""


def exit_problem(exit_status: int, words: str | None) -> Problem:
    """Why a process failed.

    Args:
        exit_status: Of the process: above 128, or negative, where a signal ended it.
        words: What it last said of the reason, or None.
    """
    number = -exit_status if exit_status < 0 else exit_status - SIGNALS
    if exit_status == BAD_DATA:
        return Problem(Cause.BAD_DATA, words or f"exit status {BAD_DATA} without a word")
    if number == signal.SIGKILL:
        return Problem(
            Cause.KILLED,
            "the process was killed (SIGKILL), most often because memory ran out; give it more, "
            "or make batches smaller" + (f"; its last words: {words}" if words else ""),
        )
    ended = f"exit status {exit_status}"
    if number in {each.value for each in signal.Signals}:
        ended = f"ended by {signal.Signals(number).name}"
    return Problem(Cause.ERROR, f"{words} ({ended})" if words else ended)
