"""How long the command line takes to start: `import rancast` and `rancast --help`.

A front that loads torch before it prints its help takes seconds, so every heavy module loads when a
command needs it. Each run is a process of its own, beside an interpreter that does nothing, whose
time no program can go below.

    python -m benchmarks.cli_start [--quick] [--json]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.harness import Result, main, run_interleaved, spread

REPOSITORY = Path(__file__).resolve().parent.parent
TARGET_SECONDS = 0.3


def help_command() -> list[str]:
    """The installed `rancast --help`, or what its script does where it is not installed."""
    script = Path(sys.executable).with_name("rancast")
    if script.exists():
        return [str(script), "--help"]
    source = "import sys; sys.argv[:] = ['rancast', '--help']; from rancast import main; main()"
    return [sys.executable, "-c", source]


def measure(quick: bool) -> Iterator[Result]:
    """The slower of the two starts, beside a bare interpreter.

    Raises:
        subprocess.CalledProcessError: A command failed; its output is shown.
    """
    commands = {
        "bare": [sys.executable, "-c", "pass"],
        "import": [sys.executable, "-c", "import rancast"],
        "help": help_command(),
    }
    seconds = run_interleaved(_runs(commands), repeats=7 if quick else 31, warmups=2)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    yield Result.at_most(
        "cli.start_seconds",
        max(medians["import"], medians["help"]),
        "s",
        TARGET_SECONDS,
        opponent="python -c pass",
        bare_seconds=medians["bare"],
        import_seconds=medians["import"],
        help_seconds=medians["help"],
        runs={name: spread(times) for name, times in seconds.items()},
    )


def _runs(commands: dict[str, list[str]]) -> dict[str, Callable[[], object]]:
    return {name: partial(_run, command) for name, command in commands.items()}


def _run(command: Sequence[str]) -> None:
    # Help is laid out for a terminal's width; a fixed one makes machines alike.
    environment = {**os.environ, "COLUMNS": "100"}
    subprocess.run(
        command,
        cwd=REPOSITORY,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
    )


if __name__ == "__main__":
    main("cli_start", measure)
