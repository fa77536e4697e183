"""Which commands a job may run, and whether their options are right, before anything is started.

A misspelt option would otherwise be found by a pod, minutes later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import typer

from training.jobs.errors import JobSpecError

_ADDED = (("--progress", "json"), ("--restart-on-new-data",))
"""What a job says to a command that knows it. Where counters come in, the data of a second attempt
are not those of the first."""

_UsageError: Any = typer.BadParameter.__bases__[0]
"""What all errors of options have in common; typer has it, and does not export it."""


def checked_arguments(arguments: Sequence[str]) -> tuple[str, ...]:
    """The arguments of rancast for a job, with what a job says besides where the command knows it.

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
    knows = {option for parameter in command.params for option in parameter.opts}
    said = {each.split("=")[0] for each in options}
    added = [word for words in _ADDED if words[0] in knows - said for word in words]
    return (name, *added, *options)


def _commands() -> dict[str, Callable[..., None]]:
    from training.commands.calibrate import calibrate
    from training.commands.finetune import finetune
    from training.commands.pretrain import pretrain
    from training.commands.train import train

    return {each.__name__: each for each in (train, finetune, pretrain, calibrate)}
