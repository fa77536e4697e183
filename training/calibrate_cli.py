"""The terminal side of calibrating a checkpoint: a progress bar and tables of what it does."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import torch
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as ProgressBar
from rich.table import Table

from kpi.catalogue import Catalogue
from kpi.history import Selection, load_windows
from model.accuracy import shown
from model.holidays import check_country
from training.calibrate import CalibrateConfig, fit_calibration
from training.calibration_check import CalibrationCheck, check_ahead
from training.cli import Unreadable, named
from training.errors import DataError
from training.fit import Progress
from training.session import Session
from training.storage import Place, check_writable, fetched, store_checkpoint, stored_checkpoint


@dataclass(frozen=True)
class CalibrateOptions:
    """What to calibrate, on what, and where to.

    Attributes:
        base: Checkpoint to calibrate.
        data: Files and directories.
        out: Checkpoint to write.
        selection: What to take from the files.
        calibration: How to calibrate.
        threads: Threads of the tensor library; None for as many as it takes by itself.
    """

    base: Place
    data: tuple[Place, ...]
    out: Place
    selection: Selection = field(default_factory=Selection)
    calibration: CalibrateConfig = field(default_factory=CalibrateConfig)
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.threads is not None and self.threads < 1:
            raise DataError(f"expected threads of at least 1, got {self.threads}")
        if self.out.is_dir():
            raise DataError(f"expected a file to write to, {self.out} is a directory")


def calibrate_with_progress(
    options: CalibrateOptions, catalogue: Catalogue, around: Session
) -> int:
    """Calibrate a checkpoint, show what that does, and write it.

    Kinds of KPI that the data lack keep the calibration that the checkpoint came with.

    Returns:
        The number of files that could not be read.

    Raises:
        PlaceError: The checkpoint cannot be written, or data are not there; before any work.
        StoreError: A store failed.
        CheckpointError: `options.base` is no checkpoint.
        DataError: There are several processes, or the data are too short.
    """
    if around.team.size > 1:
        raise DataError(
            f"expected one process, for calibration is not divided, got {around.team.size}"
        )
    console, config, unreadable = around.console, options.calibration, Unreadable(around.console)
    around.report.start("calibrate", options.out, None, 1)
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    check_writable(options.out)
    checkpoint = stored_checkpoint(options.base)
    check_country(options.selection.country)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    bar = ProgressBar(*columns, console=console, transient=True, disable=around.is_reported)
    with named(options.data), fetched(options.data) as paths:
        windows = load_windows(paths, options.selection, catalogue, unreadable)
        with bar:
            task = bar.add_task("calibrating", total=None)

            def show(done: int, total: int) -> None:
                bar.update(task, completed=done, total=total)

            def show_fit(done: int, total: int) -> None:
                show(done, total)
                around.report.step(Progress(done, total, math.nan, None, math.nan, math.nan))

            calibration = fit_calibration(checkpoint, windows, catalogue, config, show_fit)
            bar.update(task, description="checking")
            check = check_ahead(checkpoint, windows, catalogue, config, calibration, show)
    for table in calibration_tables(check):
        console.print(table)
    calibrated = replace(checkpoint, calibration=calibration.over(checkpoint.calibration))
    around.report.done(options.out, store_checkpoint(calibrated, options.out))
    console.print(
        f"checkpoint written to {options.out}", markup=False, highlight=False, soft_wrap=True
    )
    return len(unreadable.errors)


def calibration_tables(check: CalibrationCheck) -> tuple[Table, Table]:
    """Scores by KPI without and with the calibration, and coverage by level."""
    judged = (
        "judged on what it was learnt from, since the data are too short to keep some aside"
        if check.in_sample
        else "judged on the last third, learnt from the rest"
    )
    by_kpi = Table(title=f"The calibration, {judged}", title_justify="left")
    by_kpi.add_column("KPI", overflow="fold")
    for name in ("targets", "coverage 0.1 to 0.9", "WQL"):
        by_kpi.add_column(name, justify="right")
    for kpi, before in check.before.items():
        after = check.after[kpi]
        by_kpi.add_row(
            escape(kpi),
            f"{before.targets:,}",
            _change(before.coverage, after.coverage, ".1%"),
            _change(before.wql, after.wql, ".4f"),
        )
    by_level = Table(title="Share of values at or below each quantile", title_justify="left")
    by_level.add_column("level", justify="right")
    by_level.add_column("before", justify="right")
    by_level.add_column("after", justify="right")
    for level, before, after in zip(
        check.levels, check.covered_before, check.covered_after, strict=True
    ):
        by_level.add_row(f"{level:g}", f"{before:.3f}", f"{after:.3f}")
    return by_kpi, by_level


def _change(before: float, after: float, spec: str) -> str:
    return f"{shown(before, spec)} → {shown(after, spec)}"
