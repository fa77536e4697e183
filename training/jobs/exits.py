"""What the exit status of a job's process means."""

from __future__ import annotations

import signal

from training.exit_status import BAD_INPUT
from training.jobs.status import Cause, Problem
from training.torchrun import SIGNALLED


def exit_problem(exit_status: int, words: str | None) -> Problem:
    """Why a process failed.

    Args:
        exit_status: Of the process: above 128, or negative, where a signal ended it.
        words: What it last said of the reason, or None.
    """
    number = -exit_status if exit_status < 0 else exit_status - SIGNALLED
    if exit_status == BAD_INPUT:
        return Problem(Cause.BAD_DATA, words or f"exit status {BAD_INPUT} without a word")
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
