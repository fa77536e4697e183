"""torchrun, ending with the exit status of the process that failed first.

torchrun ends with status 1 whatever its processes ended with, so whoever started it could not tell
bad data, which no repetition mends (`training.exit_status`), from a machine that went away:

    python -m training.torchrun --standalone --nproc-per-node 2 -m rancast train …

takes torchrun's own options. It also starts its processes again whatever they ended with, so those
of a job leave a mark where the input was bad, and end at once where they find it
(`training.jobs.process`).

Where processes are started again, or a node is replaced, they meet in a store of their own: in the
one of torchrun itself, which it shares with them by default, they would find the addresses of those
before them, and wait for these. What is imported is as safe as it was said to be for torchrun (-P).

The first pod of an Indexed Job is told besides that it holds the
rendezvous: its own name may not be resolvable yet when torchrun looks. All wait for each other
longer than torchrun would by itself.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence

INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
"""Which pod of an Indexed Job this is."""

PATIENCE_SECONDS = 1800
"""How long pods wait for the first one and for each other: a node may have to be made, and an image
pulled there. torch itself gives up after a minute."""

OWN_STORE = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"
"""Variable by which torchrun keeps its store to itself."""

BAD_INPUT_MARK = "RANCAST_BAD_INPUT_MARK"
"""Variable with the path of a file that says that the input of this run is bad."""

SIGNALLED = 128
"""What a shell adds to the number of the signal that ended a process."""


def with_place(arguments: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """The arguments, with word of whether this node holds the rendezvous where that is known."""
    index = environment.get(INDEX_VARIABLE)
    if index is None or "--rdzv-backend=c10d" not in arguments:
        return list(arguments)
    settings = {
        "is_host": "true" if index == "0" else "false",
        "join_timeout": str(PATIENCE_SECONDS),
        "read_timeout": str(PATIENCE_SECONDS),
    }
    stated = ",".join(f"{name}={value}" for name, value in settings.items())
    return [f"--rdzv-conf={stated}", *arguments]


def main(arguments: Sequence[str]) -> int:
    """Run the processes; returns the exit status of the first that failed, or 0."""
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import parse_args, run

    os.environ.setdefault(OWN_STORE, "1")
    if sys.flags.safe_path:
        os.environ["PYTHONSAFEPATH"] = "1"
    with tempfile.TemporaryDirectory(prefix="rancast-") as folder:
        os.environ[BAD_INPUT_MARK] = os.path.join(folder, "bad-input")
        try:
            run(parse_args(with_place(arguments, os.environ)))  # type: ignore[no-untyped-call]
        except ChildFailedError as error:
            _, failure = error.get_first_failure()
            return failure.exitcode if failure.exitcode > 0 else SIGNALLED - failure.exitcode
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
