"""What a job runs: rancast, ending as a job has to (`python -m training.jobs.process`).

On the command line, exit status 1 says that the checkpoint is written and that some files could not
be read. A job that ends so would count as failed, and be trained again from the beginning. Here it
ends with 0 and a line of warning. What nobody foresaw still ends with 1, and its traceback.

Under torchrun it ends with torchrun, which a kill would leave behind it, and takes no second try at
bad input.
"""

from __future__ import annotations

import ctypes
import json
import os
import runpy
import signal
import sys
from pathlib import Path

from training.exit_status import BAD_INPUT
from training.torchrun import BAD_INPUT_MARK

PROGRAM = "rancast"
SOME_UNREADABLE = 1

_PR_SET_PDEATHSIG = 1
"""prctl(2): the signal that a process gets when its parent ends."""


def main() -> None:
    """Run rancast with the arguments of this process."""
    sys.argv[0] = PROGRAM
    mark = Path(os.environ[BAD_INPUT_MARK]) if BAD_INPUT_MARK in os.environ else None
    if mark is not None:
        _end_with_parent()
        if mark.exists():
            sys.exit(BAD_INPUT)
    try:
        runpy.run_module(PROGRAM, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code == BAD_INPUT and mark is not None:
            mark.touch()
        if end.code != SOME_UNREADABLE:
            raise
        reason = "some files could not be read and were left out; the log names them"
        sys.stdout.write(json.dumps({"event": "warning", "reason": reason}) + "\n")


def _end_with_parent() -> None:
    """Have the kernel kill this process when its parent ends, on Linux."""
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before that was said
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
