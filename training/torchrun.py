"""torchrun, ending with the exit status of the process that failed first.

torchrun ends with status 1 whatever its processes ended with, so whoever started it could not tell
bad data, which no repetition mends (`training.exit_status`), from a machine that went away:

    python -m training.torchrun --standalone --nproc-per-node 2 -m rancast train …

takes torchrun's own options.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.run import parse_args, run

SIGNALLED = 128
"""What a shell adds to the number of the signal that ended a process."""


def main(arguments: Sequence[str]) -> int:
    """Run the processes; returns the exit status of the first that failed, or 0."""
    try:
        run(parse_args(list(arguments)))  # type: ignore[no-untyped-call]
    except ChildFailedError as error:
        _, failure = error.get_first_failure()
        return failure.exitcode if failure.exitcode > 0 else SIGNALLED - failure.exitcode
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
