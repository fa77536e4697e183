"""The terminal side of training: progress bars, tables, and words for what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as ProgressBar

from kpi.catalogue import Catalogue
from kpi.errors import UnreadableFileError
from training.errors import DataError
from training.fit import Progress
from training.pretrain import PretrainOptions, pretrain
from training.session import Session
from training.storage import Place
from training.train import TrainOptions, train

LINE_STEPS = 100
"""Steps between two lines of a log."""


@dataclass
class Unreadable:
    """Collects the files that could not be read and names each once."""

    console: Console
    errors: list[UnreadableFileError] = field(default_factory=list)

    def __call__(self, error: UnreadableFileError) -> None:
        """Name one file; reading goes on with the next."""
        self.errors.append(error)
        self.console.print(
            f"not read: {error}", style="yellow", markup=False, highlight=False, soft_wrap=True
        )


@contextmanager
def named(paths: Sequence[Place]) -> Iterator[None]:
    """Say of data that cannot be used which files they came from.

    Raises:
        DataError: One arose inside.
    """
    try:
        yield
    except DataError as error:
        names = ", ".join(path.name for path in paths) or "no files"
        raise DataError(f"{names}: {error}") from error


def train_with_progress(options: TrainOptions, catalogue: Catalogue, around: Session) -> int:
    """Train and show how it goes.

    Returns:
        The number of files that could not be read, as the team's leader found.
    """
    console, unreadable = around.console, Unreadable(around.console)
    around.report.start("train", options.out, options.fit.steps, around.team.size)
    shown = shown_training(around, options.fit.steps, options.state_path)
    with named(options.data), shown as show:
        checkpoint = train(options, catalogue, unreadable, show, around.team)
    around.report.done(options.out, checkpoint)
    console.print(
        f"checkpoint written to {options.out}", markup=False, highlight=False, soft_wrap=True
    )
    return len(unreadable.errors) if around.team.leads else 0


def pretrain_with_progress(options: PretrainOptions, catalogue: Catalogue, around: Session) -> int:
    """Make a checkpoint by its recipe and show how it goes.

    Returns:
        The number of files that could not be read, as the team's leader found.
    """
    console, unreadable = around.console, Unreadable(around.console)
    around.report.start("pretrain", options.out, options.recipe.steps, around.team.size)
    if not options.data:
        console.print("no recordings are named: synthetic cells only", style="yellow")
    shown = shown_training(around, options.recipe.steps, options.state_path)
    with named(options.data), shown as show:
        checkpoint = pretrain(options, catalogue, unreadable, show, around.team)
    around.report.done(options.out, checkpoint)
    console.print(
        f"{checkpoint.name} written to {options.out}", markup=False, highlight=False, soft_wrap=True
    )
    return len(unreadable.errors) if around.team.leads else 0


@contextmanager
def shown_training(
    around: Session, steps: int, state_path: Place
) -> Iterator[Callable[[Progress], None]]:
    """Show loss, speed and time left: as a bar on a terminal, as a line now and then in a file.

    Where a program reads the report, that is all there is.

    A run that is stopped says where it goes on from.
    """
    console = around.console
    try:
        if around.is_reported:
            yield around.report.step
        elif console.is_terminal:
            with _bar(console, steps) as show:
                yield show
        else:
            yield _lines(console)
    except KeyboardInterrupt:
        say_stopped(console, state_path)
        raise


def say_stopped(console: Console, state_path: Place) -> None:
    """Say where a run that was stopped goes on from, where it kept a state."""
    if state_path.exists():
        console.print(
            f"stopped; the same command goes on from {state_path}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


def trouble_sayer(console: Console) -> Callable[[Progress], None]:
    """Says beside a bar what does not work, once each time."""
    said = None

    def say(progress: Progress) -> None:
        nonlocal said
        if progress.trouble and progress.trouble != said:
            console.print(
                progress.trouble, style="yellow", markup=False, highlight=False, soft_wrap=True
            )
        said = progress.trouble

    return say


@contextmanager
def _bar(console: Console, steps: int) -> Iterator[Callable[[Progress], None]]:
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]} validation {task.fields[validation]}"),
        TextColumn("{task.fields[speed]} steps/s, {task.fields[left]} left"),
    )
    with ProgressBar(*columns, console=console) as bar:
        task = bar.add_task("training", total=steps, loss="-", validation="-", speed="-", left="-")

        say_trouble = trouble_sayer(console)

        def show(progress: Progress) -> None:
            figures: dict[str, Any] = _figures(progress)
            bar.update(task, completed=progress.step, **figures)
            say_trouble(progress)

        yield show


def _lines(console: Console) -> Callable[[Progress], None]:
    trouble = None

    def show(progress: Progress) -> None:
        nonlocal trouble
        is_new, trouble = progress.trouble != trouble, progress.trouble
        if progress.step % LINE_STEPS and progress.step != progress.steps and not is_new:
            return
        shown = _figures(progress)
        console.print(
            f"step {progress.step} of {progress.steps}: loss {shown['loss']}, validation "
            f"{shown['validation']}, {shown['speed']} steps/s, {shown['left']} left"
            f"{f'; {trouble}' if trouble else ''}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )

    return show


def _figures(progress: Progress) -> dict[str, str]:
    validation = progress.validation_loss
    return {
        "loss": f"{progress.loss:.4f}",
        "validation": "-" if validation is None else f"{validation:.4f}",
        "speed": f"{progress.steps_per_second:.3g}",
        "left": str(timedelta(seconds=round(progress.seconds_left))),
    }
