"""torchrun that ends as its workers did; run as `python -m training.jobs.torchrun`.

torch's own ends with 1 whatever happened, and a cluster could not tell bad data (exit status 42),
which no retry mends, from a lost peer. And the first pod of an Indexed Job is told that it holds
the rendezvous, because its own name may not be resolvable yet when it looks.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
SIGNALS = 128


def with_place(arguments: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """The arguments, with word of whether this node holds the rendezvous where that is known."""
    index = environment.get(INDEX_VARIABLE)
    if index is None or "--rdzv-backend=c10d" not in arguments:
        return list(arguments)
    return [f"--rdzv-conf=is_host={'true' if index == '0' else 'false'}", *arguments]


def main() -> None:
    """Run torchrun; exit as the worker that failed first."""
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import main as torchrun

    try:
        torchrun(with_place(sys.argv[1:], os.environ))
    except ChildFailedError as error:
        _, failure = error.get_first_failure()
        status = failure.exitcode
        sys.exit(SIGNALS - status if status < 0 else status)


if __name__ == "__main__":
    main()
