"""The terminal side of training: progress bars, tables, and words for what went wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as ProgressBar

from kpi.catalogue import Catalogue
from kpi.errors import UnreadableFileError
from training.fit import Progress
from training.train import TrainOptions, train


@dataclass
class Unreadable:
    """Collects the files that could not be read and names each once."""

    console: Console
    errors: list[UnreadableFileError] = field(default_factory=list)

    def __call__(self, error: UnreadableFileError) -> None:
        """Name one file; reading goes on with the next."""
        self.errors.append(error)
        self.console.print(f"not read: {error}", style="yellow", markup=False, highlight=False)


def train_with_progress(options: TrainOptions, catalogue: Catalogue, console: Console) -> int:
    """Train with a bar that shows loss, speed and time left.

    Returns:
        The number of files that could not be read.
    """
    unreadable = Unreadable(console)
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]} validation {task.fields[validation]}"),
        TextColumn("{task.fields[speed]} steps/s, {task.fields[left]} left"),
    )
    with ProgressBar(*columns, console=console) as bar:
        task = bar.add_task(
            "training", total=options.fit.steps, loss="-", validation="-", speed="-", left="-"
        )

        def show(progress: Progress) -> None:
            validation = progress.validation_loss
            bar.update(
                task,
                completed=progress.step,
                loss=f"{progress.loss:.4f}",
                validation="-" if validation is None else f"{validation:.4f}",
                speed=f"{progress.steps_per_second:.3g}",
                left=str(timedelta(seconds=round(progress.seconds_left))),
            )

        try:
            train(options, catalogue, unreadable, show)
        except KeyboardInterrupt:
            console.print(
                f"stopped; the same command goes on from {options.state_path}",
                markup=False,
                highlight=False,
            )
            raise
    console.print(f"checkpoint written to {options.out}", markup=False, highlight=False)
    return len(unreadable.errors)
