"""Which commands a job may run, and whether their options are right, before anything is started.

A misspelt option would otherwise be found by a pod, minutes later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import typer

from training.jobs.errors import JobSpecError

_PROGRESS = "--progress"
_UsageError: Any = typer.BadParameter.__bases__[0]
"""What all errors of options have in common; typer has it, and does not export it."""


def checked_arguments(arguments: Sequence[str]) -> tuple[str, ...]:
    """The arguments of rancast for a job; told to print its progress where the command can.

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
    app = typer.Typer(add_completion=False)
    app.command()(known[name])
    command = typer.main.get_command(app)
    try:
        command.make_context(f"rancast {name}", list(options))
    except _UsageError as error:
        raise JobSpecError(f"rancast {name}: {error.format_message()}") from error
    can = any(_PROGRESS in parameter.opts for parameter in command.params)
    if can and not any(each.split("=")[0] == _PROGRESS for each in options):
        options = [_PROGRESS, "json", *options]
    return (name, *options)


def _commands() -> dict[str, Callable[..., None]]:
    from training.commands.calibrate import calibrate
    from training.commands.finetune import finetune
    from training.commands.pretrain import pretrain
    from training.commands.train import train

    return {each.__name__: each for each in (train, finetune, pretrain, calibrate)}
