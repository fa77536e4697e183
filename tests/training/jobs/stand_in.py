"""Stands in for the trainer in tests: what a run prints and how it ends, within milliseconds.

It is started with the command line of a job, whatever comes before the module in it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path


def write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def say(event: str, **fields: object) -> None:
    write(json.dumps({"event": event, **fields}))


def main() -> None:
    what, *rest = sys.argv[sys.argv.index("training.jobs.process") + 1 :]
    write("this line is no event")
    if what == "fail":
        status, reason = rest
        say("error", reason=reason)
        sys.exit(int(status))
    if what == "hang":
        Path(rest[0]).write_text(str(os.getpid()))
        say("epoch", epoch=1, of=9, loss=0.5)
        signal.pause()
    if what == "wait":
        begun, go_on = map(Path, rest)
        begun.touch()
        go_on.read_bytes()  # of a named pipe: until somebody writes
    if what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "flaky" and not Path(rest[0]).exists():
        Path(rest[0]).touch()
        sys.exit("rancast: the first attempt fails")
    if what == "variable":
        write(f"variable {os.environ.get(rest[0])}")
    if what == "trouble":
        for step in (1, 2):
            say("step", step=step, of=2, trouble=rest[0])
    epochs = int(rest[0]) if what == "train" else 2
    say("start", of=epochs)
    for epoch in range(1, epochs + 1):
        say("epoch", epoch=epoch, of=epochs, loss=1 / epoch, seconds=0.1)
    say("done", checkpoint="mine.safetensors")


if __name__ == "__main__":
    main()
