"""The terminal side of offline forecasts: progress, a small table, words for what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from kpi.catalogue import Catalogue
from kpi.window import KpiWindow
from model.accuracy import shown
from model.checkpoint import Checkpoint, load_checkpoint
from model.predictor import Forecast
from model.pretrained import find_checkpoint
from model.rollout import Rollout
from model.transformer import TransformerPredictor
from service.answers import level_key
from service.offline.doctor import Trouble, examine
from service.offline.forecast import ForecastJob, run_forecast
from service.offline.output import check_output, write_output
from service.timestamps import to_rfc3339

MAX_ROWS = 40
STYLES = {Trouble.NONE: "green", Trouble.SLOW: "yellow", Trouble.BROKEN: "red"}


def forecast_with_progress(
    job: ForecastJob, catalogue: Catalogue, checkpoint: Path | None, out: Path | None
) -> int:
    """Forecast, write or print, and name what could not be read.

    Returns:
        The number of files that could not be read.

    Raises:
        OutputError: `out` has no known suffix or cannot be written.
        CheckpointError: The checkpoint cannot be used.
    """
    told = Console(stderr=True)
    if out:
        check_output(out)
    loaded = load_checkpoint(find_checkpoint(checkpoint))
    predictor = Rollout(TransformerPredictor(loaded, catalogue), catalogue)
    with Progress(console=told, transient=True) as bar:
        task = bar.add_task("reading", total=None)
        result = run_forecast(
            job,
            predictor,
            catalogue,
            lambda done, total: bar.update(
                task, description="forecasting", completed=done, total=total
            ),
        )
    for error in result.unreadable:
        told.print(
            f"not read: {error}", style="yellow", markup=False, highlight=False, soft_wrap=True
        )
    if out:
        write_output(result, out)
        told.print(
            f"{len(result.forecasts)} cells forecast, written to {out}",
            markup=False,
            highlight=False,
        )
    else:
        Console().print(forecast_overview(result.windows, result.forecasts))
    return len(result.unreadable)


def forecast_overview(windows: Sequence[KpiWindow], forecasts: Sequence[Forecast]) -> Table:
    """One line a cell and KPI: the last value, and the quantiles of the first and last step."""
    horizon = forecasts[0].values.shape[1]
    table = Table(title=f"{len(forecasts)} cells, {horizon} steps", title_justify="left")
    for name in ("cell", "KPI", "from"):
        table.add_column(name, overflow="fold")
    table.add_column("last", justify="right")
    levels = ", ".join(level_key(level) for level in forecasts[0].levels)
    table.add_column(f"step 1 ({levels})", justify="right")
    table.add_column(f"step {horizon} ({levels})", justify="right")
    rows = [
        (window, forecast, row)
        for window, forecast in zip(windows, forecasts, strict=True)
        for row in range(len(forecast.kpis))
    ]
    for window, forecast, row in rows[:MAX_ROWS]:
        seen = window.values[row][~np.isnan(window.values[row])]
        table.add_row(
            escape(forecast.cell),
            escape(forecast.kpis[row]),
            to_rfc3339(forecast.start_ms),
            f"{seen[-1]:.4g}" if len(seen) else "-",
            *(
                "  ".join(shown(value, ".4g") for value in forecast.values[row, step])
                for step in (0, -1)
            ),
        )
    if len(rows) > MAX_ROWS:
        table.caption = f"the first {MAX_ROWS} of {len(rows)} lines; --out FILE.csv has them all"
    return table


def show_checkpoint(checkpoint: Path | None) -> None:
    """Print the card of a checkpoint.

    Raises:
        CheckpointError: The checkpoint cannot be used.
    """
    found = load_checkpoint(find_checkpoint(checkpoint))
    console = Console()
    headline = f"{found.name} {found.version}  {found.digest}"
    console.print(headline, style="bold", markup=False, highlight=False)
    console.print(f"{found.build().parameter_count():,} weights", highlight=False)
    for title, story in (
        ("shape", found.config.to_dict()),
        ("training", found.training),
        ("evaluation", found.evaluation),
        ("calibration", _calibration_story(found)),
    ):
        table = Table(title=title, title_justify="left", show_header=False)
        table.add_column("field")
        table.add_column("value", overflow="fold")
        for name, value in story.items():
            table.add_row(name, escape(str(value)))
        console.print(table)


def _calibration_story(checkpoint: Checkpoint) -> dict[str, object]:
    """How the quantiles are calibrated and on what, without the table of shifts."""
    calibration = checkpoint.calibration
    if calibration is None:
        return {"method": "none: quantiles are as trained"}
    targets = {kind: sum(counts) for kind, counts in calibration.counts.items()}
    return {"method": calibration.method, "targets": targets, **calibration.provenance}


def examine_machine(checkpoint: Path | None, catalogue: Catalogue) -> bool:
    """Print what the doctor finds.

    Returns:
        Whether nothing is broken.
    """
    console = Console(highlight=False)
    sound = True
    for finding in examine(checkpoint, catalogue):
        console.print(
            f"[{STYLES[finding.trouble]}]{finding.trouble.value:6}[/] {finding.subject}: "
            f"{escape(finding.words)}",
            soft_wrap=True,
        )
        sound &= finding.trouble is not Trouble.BROKEN
    return sound
