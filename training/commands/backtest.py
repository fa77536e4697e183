"""`rancast backtest`: how good a checkpoint would have been."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kpi.options import (
    Catalogues,
    Cells,
    Columns,
    Country,
    Exclude,
    KeepSuspect,
    Kpis,
    Paths,
    StepSeconds,
    TimeZone,
    load,
    select,
)


def backtest(
    checkpoint: Annotated[Path, typer.Argument(help="Checkpoint to test.")],
    data: Paths,
    opponent: Annotated[
        list[str] | None,
        typer.Option(
            help="Whom to compare with: last-value, daily-naive, weekly-naive, daily-mean, "
            "weekly-mean, seasonal-baseline; with the extra 'opponents' also auto-theta, mstl, "
            "lightgbm, lightgbm-tuned. Repeat for more.",
            show_default="the six seasonal ones",
        ),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report here.")] = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            help="Write scores by cell to this file (.csv), or all tables to this folder."
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes to work with; the result is the same.")] = 1,
    horizon: Annotated[int, typer.Option(help="Steps to forecast.")] = 24,
    test: Annotated[float, typer.Option(help="Share of each history to test on.")] = 0.3,
    stride: Annotated[
        int | None, typer.Option(help="Steps between origins.", show_default="horizon")
    ] = None,
    max_origins: Annotated[int, typer.Option(help="Most origins a cell.")] = 50,
    kpi: Kpis = None,
    cell: Cells = None,
    exclude: Exclude = None,
    step_seconds: StepSeconds = None,
    time_zone: TimeZone = "UTC",
    country: Country = None,
    keep_suspect: KeepSuspect = False,
    catalogue: Catalogues = None,
    columns: Columns = None,
) -> None:
    """Test a checkpoint on past origins against opponents: WQL, MASE, WAPE, coverage, width."""
    from rich.console import Console

    from training.backtest import BacktestConfig
    from training.backtest_cli import BacktestOptions, backtest_with_progress
    from training.opponents import DEFAULT_OPPONENTS

    options = BacktestOptions(
        checkpoint=checkpoint,
        data=tuple(data),
        selection=select(
            kpi, cell, exclude, step_seconds, time_zone, keep_suspect, columns, country
        ),
        config=BacktestConfig(
            horizon=horizon, test_ratio=test, stride=stride, max_origins=max_origins
        ),
        opponents=tuple(opponent or DEFAULT_OPPONENTS),
        jobs=jobs,
        report=report,
        table=csv,
    )
    unreadable = backtest_with_progress(options, load(catalogue), Console())
    raise typer.Exit(1 if unreadable else 0)
