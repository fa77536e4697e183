"""The terminal side of calibrating a checkpoint: a progress bar and tables of what it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as ProgressBar
from rich.table import Table

from kpi.catalogue import Catalogue
from kpi.history import Selection, load_windows
from model.accuracy import shown
from model.checkpoint import load_checkpoint, save_checkpoint
from model.holidays import check_country
from model.pretrained import find_checkpoint
from training.calibrate import CalibrateConfig, fit_calibration
from training.calibration_check import CalibrationCheck, check_ahead
from training.cli import Unreadable, named


def calibrate_with_progress(
    checkpoint_path: Path,
    data: Sequence[Path],
    selection: Selection,
    config: CalibrateConfig,
    catalogue: Catalogue,
    console: Console,
    *,
    out: Path,
) -> int:
    """Calibrate a checkpoint, show what that does, and write it.

    Kinds of KPI that the data lack keep the calibration that the checkpoint came with.

    Returns:
        The number of files that could not be read.
    """
    unreadable = Unreadable(console)
    checkpoint = load_checkpoint(find_checkpoint(checkpoint_path))
    check_country(selection.country)
    windows = load_windows(data, selection, catalogue, unreadable)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with named(data), ProgressBar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("calibrating", total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        calibration = fit_calibration(checkpoint, windows, catalogue, config, show)
        bar.update(task, description="checking")
        check = check_ahead(checkpoint, windows, catalogue, config, calibration, show)
    for table in calibration_tables(check):
        console.print(table)
    save_checkpoint(replace(checkpoint, calibration=calibration.over(checkpoint.calibration)), out)
    console.print(f"checkpoint written to {out}", markup=False, highlight=False, soft_wrap=True)
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
