"""The command line: a thin front over the commands of the packages.

Each command's options stand beside its job (`service/commands.py`, `training/commands/`), and
what a command does is imported when it is called, so `rancast --help` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import typer
import typer.core

from service.commands import compile_, demo, doctor, forecast, model, plan, serve
from service.package_commands import COMMANDS as PACKAGE_COMMANDS
from service.package_commands import HELP as PACKAGE_HELP
from training.commands.backtest import backtest
from training.commands.calibrate import calibrate
from training.commands.finetune import finetune
from training.commands.gallery import gallery
from training.commands.job import COMMANDS as JOB_COMMANDS
from training.commands.job import HELP as JOB_HELP
from training.commands.pretrain import pretrain
from training.commands.simulate import simulate
from training.commands.train import train

UNUSABLE = 2
UNTEACHABLE = 42
STOPPED = 130
LEARNING = (train, pretrain, finetune, calibrate)
OUR_PACKAGES = ("kpi", "model", "training", "service")

app = typer.Typer(
    name="rancast",
    help="Forecast the load of radio cells, with honest uncertainty, inside a latency budget.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _plainly(command: Callable[..., None]) -> Callable[..., None]:
    """Errors of our own packages, of values and of files: one line on stderr, exit status 2.

    The commands that learn end with status 42 where no repetition would help.
    """

    @wraps(command)
    def run(*args: object, **options: object) -> None:
        try:
            command(*args, **options)
        except KeyboardInterrupt:
            raise typer.Exit(STOPPED) from None
        except Exception as error:
            ours = any(c.__module__.split(".")[0] in OUR_PACKAGES for c in type(error).__mro__)
            if not ours and not isinstance(error, ValueError | OSError):
                raise
            sys.stderr.write(f"rancast: {error}\n")
            raise typer.Exit(_status(command, error)) from error

    return run


def _status(command: Callable[..., None], error: Exception) -> int:
    if command not in LEARNING:
        return UNUSABLE
    from training.exit_status import status_of

    return status_of(error)


class _LearningCommand(typer.core.TyperCommand):
    """A command whose misspelt options are no matter of trying again either."""

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """The context of a call.

        Raises:
            UsageError: The command line cannot be understood; bears its exit status.
        """
        try:
            return super().make_context(*args, **extra)
        except Exception as error:
            # Of click's usage errors, wherever the installed typer keeps them.
            if getattr(error, "exit_code", None) == UNUSABLE:
                error.exit_code = UNTEACHABLE  # type: ignore[attr-defined]
            raise


for _command in (
    serve,
    forecast,
    pretrain,
    train,
    finetune,
    backtest,
    calibrate,
    gallery,
    simulate,
    demo,
    model,
    doctor,
    compile_,
    plan,
):
    app.command(
        _command.__name__.rstrip("_"), cls=_LearningCommand if _command in LEARNING else None
    )(_plainly(_command))

_package = typer.Typer(help=PACKAGE_HELP, no_args_is_help=True, rich_markup_mode=None)
for _command in PACKAGE_COMMANDS:
    _package.command(_command.__name__.rstrip("_"))(_plainly(_command))
app.add_typer(_package, name="package")

_jobs = typer.Typer(help=JOB_HELP, no_args_is_help=True, rich_markup_mode=None)
for _command in JOB_COMMANDS:
    _jobs.command(_command.__name__.rstrip("_"))(_plainly(_command))
app.add_typer(_jobs, name="job")


def main() -> None:
    """Entry point of the console script."""
    app()


if __name__ == "__main__":
    main()
