"""What a job runs: rancast, ending as a job has to (`python -m training.jobs.process`).

On the command line, exit status 1 says that the checkpoint is written and that some files could not
be read. A job that ends so would count as failed, and be trained again from the beginning. Here it
ends with 0 and a line of warning. What nobody foresaw still ends with 1, and its traceback.
"""

from __future__ import annotations

import json
import runpy
import sys

PROGRAM = "rancast"
SOME_UNREADABLE = 1


def main() -> None:
    """Run rancast with the arguments of this process."""
    sys.argv[0] = PROGRAM
    try:
        runpy.run_module(PROGRAM, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code != SOME_UNREADABLE:
            raise
        reason = "some files could not be read and were left out; the log names them"
        sys.stdout.write(json.dumps({"event": "warning", "reason": reason}) + "\n")


if __name__ == "__main__":
    main()
