"""Which commands a job may run, and whether their options are right, before anything is started.

A misspelt option would otherwise be found by a pod, minutes later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from training.jobs.errors import JobSpecError

IN_ONE_PROCESS = ("calibrate",)
_UsageError: Any = typer.BadParameter.__bases__[0]
"""What all errors of options have in common; typer has it, and does not export it."""


@dataclass(frozen=True)
class TrainingCommand:
    """A command of rancast that a job may run.

    Attributes:
        arguments: Of rancast: the command and its options.
        out: Path or URL of the checkpoint that it writes.
    """

    arguments: tuple[str, ...]
    out: str


def checked_command(
    arguments: Sequence[str], *, processes: int = 1, threads: int | None = None
) -> TrainingCommand:
    """The command of a job; told to print its progress, how to compute and what it is called.

    Only where the command can be told that, and was not.

    Args:
        arguments: Of rancast, as a user types them.
        processes: That share the work, all nodes together.
        threads: To compute with in each process, unless the arguments say it; None for the
            command's own.

    Raises:
        JobSpecError: It is no command that trains, or its options are wrong.
    """
    known = _commands()
    name, *options = arguments or [""]
    if name not in known:
        raise JobSpecError(
            f"expected a command that trains ({', '.join(known)}) and its options after --, "
            f"as in: rancast job submit -- train network --out mine.safetensors; got {name!r}"
        )
    if "--help" in options:
        raise JobSpecError(f"expected a job, not a question; ask rancast {name} --help")
    if name in IN_ONE_PROCESS and processes > 1:
        raise JobSpecError(f"expected one process for {name}, got {processes}")
    app = typer.Typer(add_completion=False)
    app.command()(known[name])
    command = typer.main.get_command(app)
    try:
        context = command.make_context(f"rancast {name}", list(options))
    except _UsageError as error:
        raise JobSpecError(f"rancast {name}: {error.format_message()}") from error
    # Where counters come in, the data of a second attempt are not those of the first.
    run_name = hashlib.sha256("\0".join(arguments).encode()).hexdigest()[:12]
    told = {
        "progress": ("--progress", "json"),
        "threads": () if threads is None else ("--threads", str(threads)),
        "run_name": ("--run-name", run_name),
    }
    extra = [
        word
        for option, words in told.items()
        if option in context.params and not was_given(context, option)
        for word in words
    ]
    return TrainingCommand((name, *extra, *options), str(context.params["out"]))


def was_given(context: Any, parameter: str) -> bool:
    """Whether a parameter stands on the command line; one of the environment does not."""
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"


def _commands() -> dict[str, Callable[..., None]]:
    from training.commands.calibrate import calibrate
    from training.commands.finetune import finetune
    from training.commands.pretrain import pretrain
    from training.commands.train import train

    return {each.__name__: each for each in (train, finetune, pretrain, calibrate)}
