"""`rancast backtest`: how good a checkpoint would have been."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kpi.options import (
    Catalogues,
    Cells,
    Columns,
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
    report: Annotated[Path | None, typer.Option(help="Write an HTML report here.")] = None,
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
    keep_suspect: KeepSuspect = False,
    catalogue: Catalogues = None,
    columns: Columns = None,
) -> None:
    """Test a checkpoint on past origins against seasonal forecasts: WQL, MASE, WAPE, coverage."""
    from rich.console import Console

    from training.backtest import BacktestConfig
    from training.cli import backtest_with_progress

    unreadable = backtest_with_progress(
        checkpoint,
        data,
        select(kpi, cell, exclude, step_seconds, time_zone, keep_suspect, columns),
        BacktestConfig(horizon=horizon, test_ratio=test, stride=stride, max_origins=max_origins),
        load(catalogue),
        Console(),
        report=report,
    )
    raise typer.Exit(1 if unreadable else 0)
