"""The terminal side of a backtest: progress, the table of scores, and where the files went."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as ProgressBar
from rich.table import Table

from kpi.catalogue import Catalogue
from kpi.history import Selection, load_windows
from model.accuracy import shown
from model.checkpoint import Checkpoint, load_checkpoint
from model.files import make_folder
from model.holidays import check_country
from model.predictor import Predictor
from model.pretrained import find_checkpoint
from model.rollout import Rollout
from model.transformer import TransformerPredictor
from training.backtest import Backtest, BacktestConfig, BacktestResult, Skipped, backtest
from training.backtest.seen import seen_note
from training.cli import Unreadable
from training.errors import DataError
from training.opponents import make_opponents
from training.report import ScoresTable, write_hours, write_report, write_worst
from training.report.words import UNCALIBRATED, counted, headline

TABLE_SUFFIX = ".csv"
NAMED_SKIPPED = 5


@dataclass(frozen=True)
class BacktestOptions:
    """What to test against what, and where the result goes.

    Attributes:
        checkpoint: File to test.
        data: Files and directories.
        selection: What to take from them.
        config: Horizon, origins and levels.
        opponents: Names from `training.opponents.OPPONENTS`.
        jobs: Processes.
        report: HTML page to write.
        table: CSV to write: a file for the scores alone, or a directory for all tables.
    """

    checkpoint: Path
    data: tuple[Path, ...]
    selection: Selection
    config: BacktestConfig
    opponents: tuple[str, ...]
    jobs: int = 1
    report: Path | None = None
    table: Path | None = None

    def __post_init__(self) -> None:
        for path, what in ((self.report, "report"), (self.scores_path, "scores")):
            if path is not None and path.is_dir():
                raise DataError(f"expected a file to write the {what} to, {path} is a directory")
        if self.table is not None and self.table.suffix != TABLE_SUFFIX and self.table.is_file():
            raise DataError(
                f"expected a file {TABLE_SUFFIX} or a folder to write the tables to, "
                f"{self.table} is neither"
            )

    @property
    def scores_path(self) -> Path | None:
        """File of the scores."""
        if self.table is None or self.table.suffix == TABLE_SUFFIX:
            return self.table
        return self.table / "scores.csv"


def backtest_with_progress(options: BacktestOptions, catalogue: Catalogue, console: Console) -> int:
    """Backtest a checkpoint against its opponents, print a table, write what was asked for.

    Returns:
        The number of files that could not be read.
    """
    unreadable = Unreadable(console)
    checkpoint = load_checkpoint(find_checkpoint(options.checkpoint))
    predictors = [
        *forecasters_of(checkpoint, catalogue),
        *make_opponents(options.opponents, catalogue),
    ]
    if options.report is not None:
        make_folder(options.report.parent)
    check_country(options.selection.country)
    windows = load_windows(options.data, options.selection, catalogue, unreadable)
    with ExitStack() as stack:
        path = options.scores_path
        scores = None if path is None else stack.enter_context(ScoresTable(path))
        bar = stack.enter_context(_bar(console))
        watcher = _Watcher(bar)
        how = Backtest(
            jobs=options.jobs,
            on_progress=watcher.show_origins,
            on_fit=watcher.show_fit,
            on_cell=None if scores is None else scores.add,
        )
        result = backtest(predictors, windows, options.config, how)
    if note := seen_note(checkpoint, windows, options.config):
        result = replace(result, notes={checkpoint.name: note, **result.notes})
    for table in result_tables(result):
        console.print(table)
    tested = f"{counted(result.cells, 'cell')}, {counted(result.origins, 'origin')}"
    _say(console, f"{tested}. {headline(result)}")
    for line in _remarks(result):
        _say(console, line)
    _write(options, result, f"Backtest of {checkpoint.name} {checkpoint.version}", catalogue)
    for written in (options.report, options.table):
        if written is not None:
            _say(console, f"written: {written}")
    return len(unreadable.errors)


def forecasters_of(checkpoint: Checkpoint, catalogue: Catalogue) -> list[Predictor]:
    """The checkpoint as it serves and, where that is calibrated, as it would be without."""
    served = Rollout(TransformerPredictor(checkpoint, catalogue), catalogue)
    if checkpoint.calibration is None:
        return [served]
    plain = replace(checkpoint, name=checkpoint.name + UNCALIBRATED, calibration=None)
    return [served, Rollout(TransformerPredictor(plain, catalogue), catalogue)]


def result_tables(result: BacktestResult) -> list[Table]:
    """One a KPI: scores, best first, then those of the model under test by lead."""
    return [_kpi_table(result, kpi) for kpi in result.kpis]


def _kpi_table(result: BacktestResult, kpi: str) -> Table:
    table = Table(title=escape(kpi), title_justify="left")
    table.add_column("model", overflow="fold")
    table.add_column("steps ahead", no_wrap=True)
    for name in ("WQL", "MASE", "WAPE", "coverage", "width"):
        table.add_column(name, justify="right", no_wrap=True)
    lines = [(line, "") for line in result.overall() if line.kpi == kpi]
    lines += [(line, "dim") for line in result.by_lead(result.model, kpi)]
    for line, style in lines:
        scores = line.accuracy
        table.add_row(
            escape(line.model),
            line.leads,
            shown(scores.wql, ".4f"),
            shown(scores.mase, ".3f"),
            shown(scores.wape, ".1%"),
            shown(scores.coverage, ".1%"),
            shown(scores.relative_width, ".1%"),
            style=style,
        )
    return table


class _Watcher:
    """Puts progress on the bar: one line for each learner, one for the origins."""

    def __init__(self, bar: ProgressBar) -> None:
        self._bar = bar
        self._learners: dict[str, TaskID] = {}
        self._origins = bar.add_task("origins", total=None)

    def show_origins(self, done: int, total: int) -> None:
        self._bar.update(self._origins, completed=done, total=total)

    def show_fit(self, name: str, done: int, total: int) -> None:
        if name not in self._learners:
            self._learners[name] = self._bar.add_task(f"{escape(name)} learns", total=total)
        self._bar.update(self._learners[name], completed=done, total=total)


def _bar(console: Console) -> ProgressBar:
    return ProgressBar(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
    )


def _remarks(result: BacktestResult) -> list[str]:
    """What a reader of the table has to know besides."""
    lines = [
        f"{model}: gave up on {count:,} of {result.series:,} series, scored by their last value"
        for model, count in result.fallbacks.items()
        if count
    ]
    if note := result.notes.get(result.model):
        lines.insert(0, f"{result.model}: {note}")
    lines += _named(result.skipped)
    if len(result.step_seconds) > 1:
        steps = ", ".join(f"{seconds:g}" for seconds in result.step_seconds)
        lines.append(f"steps of {steps} s are mixed in the scores; --step-seconds takes one")
    return lines


def _named(skipped: Sequence[Skipped]) -> list[str]:
    lines = [f"not tested: {entry.cell}: {entry.reason}" for entry in skipped[:NAMED_SKIPPED]]
    if len(skipped) > NAMED_SKIPPED:
        lines.append(f"not tested: {len(skipped) - NAMED_SKIPPED:,} more cells")
    return lines


def _write(
    options: BacktestOptions, result: BacktestResult, title: str, catalogue: Catalogue
) -> None:
    if options.report is not None:
        write_report(result, options.report, title, catalogue)
    if options.table is not None and options.table.suffix != TABLE_SUFFIX:
        write_hours(result, options.table / "hours.csv")
        write_worst(result, options.table / "worst.csv")


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)
