"""How long the command line takes to start: `import rancast` and `rancast --help`.

A front that loads torch before it prints its help takes seconds, so every heavy module loads when a
command needs it. Each run is a process of its own, beside an interpreter that does nothing, whose
time no program can go below. The CPU time beside the wall time tells a slow start from a busy
machine.

    python -m benchmarks.cli_start [--quick] [--json]
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
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
    cpu_seconds: dict[str, list[float]] = {name: [] for name in commands}
    runs = {name: partial(_run, command, cpu_seconds[name]) for name, command in commands.items()}
    seconds = run_interleaved(runs, repeats=7 if quick else 31, warmups=2)
    wall = {name: statistics.median(times) for name, times in seconds.items()}
    cpu = {name: statistics.median(times) for name, times in cpu_seconds.items()}
    yield Result.at_most(
        "cli.start_seconds",
        max(wall["import"], wall["help"]),
        "s",
        TARGET_SECONDS,
        opponent="python -c pass",
        bare_seconds=wall["bare"],
        import_seconds=wall["import"],
        help_seconds=wall["help"],
        bare_cpu_seconds=cpu["bare"],
        import_cpu_seconds=cpu["import"],
        help_cpu_seconds=cpu["help"],
        runs={name: spread(times) for name, times in seconds.items()},
    )


def _run(command: Sequence[str], cpu_seconds: list[float]) -> None:
    # Help is laid out for a terminal's width; a fixed one makes machines alike.
    environment = {**os.environ, "COLUMNS": "100"}
    before = _children_cpu_seconds()
    subprocess.run(
        command,
        cwd=REPOSITORY,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    cpu_seconds.append(_children_cpu_seconds() - before)


def _children_cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main("cli_start", measure)
