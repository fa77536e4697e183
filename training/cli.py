"""The terminal side of training: progress bars, tables, and words for what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as ProgressBar
from rich.table import Table

from kpi.catalogue import Catalogue
from kpi.errors import UnreadableFileError
from kpi.history import Selection, load_windows
from model.accuracy import shown
from model.baseline import SeasonalBaseline
from model.checkpoint import load_checkpoint
from model.predictor import Predictor
from model.transformer import TransformerPredictor
from training.backtest import BacktestConfig, BacktestResult, backtest
from training.fit import Progress
from training.report import write_report
from training.train import TrainOptions, train

OPPONENTS = ("daily naive", "weekly naive", "last value")


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


def backtest_with_progress(
    checkpoint_path: Path,
    data: Sequence[Path],
    selection: Selection,
    config: BacktestConfig,
    catalogue: Catalogue,
    console: Console,
    *,
    report: Path | None = None,
) -> int:
    """Backtest a checkpoint against the seasonal baselines, print a table, write the report.

    Returns:
        The number of files that could not be read.
    """
    unreadable = Unreadable(console)
    checkpoint = load_checkpoint(checkpoint_path)
    windows = load_windows(data, selection, catalogue, unreadable)
    predictors: list[Predictor] = [
        TransformerPredictor(checkpoint, catalogue),
        SeasonalBaseline(catalogue),
        *(SeasonalBaseline(catalogue, (name,)) for name in OPPONENTS),
    ]
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with ProgressBar(*columns, console=console) as bar:
        task = bar.add_task("origins", total=None)
        result = backtest(
            predictors,
            windows,
            config,
            lambda done, total: bar.update(task, completed=done, total=total),
        )
    console.print(result_table(result))
    if report:
        title = f"Backtest of {checkpoint.name} {checkpoint.version}"
        write_report(result, report, title, catalogue)
        console.print(f"report written to {report}", markup=False, highlight=False)
    return len(unreadable.errors)


def result_table(result: BacktestResult) -> Table:
    """Scores by KPI, best first, then the best model's WQL by lead."""
    table = Table(title=f"{result.cells} cells, {result.origins} origins", title_justify="left")
    for name in ("KPI", "model"):
        table.add_column(name, overflow="fold")
    table.add_column("steps ahead", no_wrap=True)
    for name in ("WQL", "MASE", "WAPE", "coverage"):
        table.add_column(name, justify="right")
    lines = [(line, True) for line in result.overall()]
    first = result.scores[0].model
    lines += [(line, False) for line in result.scores if line.model == first]
    for line, whole in lines:
        scores = line.accuracy
        table.add_row(
            escape(line.kpi),
            escape(line.model),
            line.leads,
            shown(scores.wql, ".4f"),
            shown(scores.mase, ".3f"),
            shown(scores.wape, ".1%"),
            shown(scores.coverage, ".1%"),
            style=None if whole else "dim",
        )
    return table
