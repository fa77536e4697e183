"""The commands that make and test checkpoints and data: `train`, `backtest`, `simulate`.

A command is its options and its help; what it does is imported when it is called.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

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


def train(
    out: Annotated[Path, typer.Option(help="Checkpoint to write (.safetensors).")],
    data: Annotated[
        list[Path] | None,
        typer.Argument(help="PM files, tables, directories; none: synthetic cells only."),
    ] = None,
    preset: Annotated[str, typer.Option(help="Shape of the forecaster: nano, small.")] = "small",
    version: Annotated[str, typer.Option(help="Version that the checkpoint bears.")] = "0.1.0",
    synthetic: Annotated[float, typer.Option(help="Share of synthetic batches, 0 to 1.")] = 0.5,
    steps: Annotated[int, typer.Option(help="Optimiser steps of the schedule.")] = 2000,
    seed: Annotated[int, typer.Option(help="Of the first weights and of all data drawn.")] = 0,
    series: Annotated[int, typer.Option(help="Series in a batch.")] = 32,
    learning_rate: Annotated[float, typer.Option(help="Peak learning rate.")] = 2e-3,
    warmup_steps: Annotated[int, typer.Option(help="Steps of linear warm-up.")] = 100,
    evaluate_every: Annotated[int, typer.Option(help="Steps between validations.")] = 200,
    patience: Annotated[int, typer.Option(help="Validations without gain before stopping.")] = 10,
    validation: Annotated[float, typer.Option(help="Share of each history that judges.")] = 0.15,
    threads: Annotated[int, typer.Option(help="Threads to compute with.")] = 1,
    kpi: Kpis = None,
    cell: Cells = None,
    exclude: Exclude = None,
    step_seconds: StepSeconds = None,
    time_zone: TimeZone = "UTC",
    keep_suspect: KeepSuspect = False,
    catalogue: Catalogues = None,
    columns: Columns = None,
) -> None:
    """Train a checkpoint. A run that was stopped goes on where it was when called again."""
    from rich.console import Console

    from training.cli import train_with_progress
    from training.fit import FitConfig
    from training.train import TrainOptions

    options = TrainOptions(
        out=out,
        data=tuple(data or ()),
        selection=select(kpi, cell, exclude, step_seconds, time_zone, keep_suspect, columns),
        preset=preset,
        version=version,
        synthetic_ratio=synthetic,
        validation_ratio=validation,
        series=series,
        fit=FitConfig(
            seed=seed,
            steps=steps,
            learning_rate=learning_rate,
            warmup_steps=warmup_steps,
            evaluate_every=evaluate_every,
            patience=patience,
        ),
        threads=threads,
    )
    unreadable = train_with_progress(options, load(catalogue), Console(stderr=True))
    raise typer.Exit(1 if unreadable else 0)


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


def simulate(
    out: Annotated[Path, typer.Option(help="Directory to write to; continued where it exists.")],
    cells: Annotated[int, typer.Option(help="Number of cells.")] = 12,
    cells_per_gnb: Annotated[int, typer.Option(help="Cells of one gNB.")] = 3,
    days: Annotated[float, typer.Option(help="Days of history, written at once.")] = 14.0,
    periods: Annotated[
        int | None, typer.Option(help="Live periods to write after it.", show_default="no end")
    ] = None,
    period_seconds: Annotated[int, typer.Option(help="Granularity period.")] = 900,
    speed: Annotated[float, typer.Option(help="Live periods a second; inf: no waiting.")] = 1.0,
    keep_days: Annotated[
        float | None, typer.Option(help="Remove live files of this age.", show_default="keep all")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(help="Begin of the history (ISO 8601).", show_default="it ends now"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything that is random.")] = 1,
    time_zone: Annotated[str, typer.Option(help="Zone of the users' days.")] = "UTC",
    kpi: Annotated[
        list[str] | None, typer.Option("--kpi", help="KPI to report; repeat for more.")
    ] = None,
    profile: Annotated[
        list[str] | None, typer.Option("--profile", help="Class of cells to draw; repeatable.")
    ] = None,
    dialect: Annotated[
        list[str] | None, typer.Option("--dialect", help="How files are written; repeatable.")
    ] = None,
    compact: Annotated[bool, typer.Option("--compact", help="Results as lists.")] = False,
    gzip: Annotated[bool, typer.Option("--gzip", help="Compress the files.")] = False,
    history_layout: Annotated[
        Literal["day", "period"], typer.Option(help="History files: one a day, or one a period.")
    ] = "day",
    late: Annotated[float, typer.Option(help="Share of files that arrive late.")] = 0.0,
    duplicate: Annotated[float, typer.Option(help="Share of files that arrive twice.")] = 0.0,
    missing_file: Annotated[float, typer.Option(help="Share of periods without a file.")] = 0.0,
    missing_counter: Annotated[float, typer.Option(help="Share of values left out.")] = 0.0,
    suspect: Annotated[float, typer.Option(help="Share of suspect measurements.")] = 0.0,
    corrected: Annotated[float, typer.Option(help="Share of wrong files sent again.")] = 0.0,
    wrong_clock: Annotated[float, typer.Option(help="Share of gNBs with a wrong clock.")] = 0.0,
    late_periods: Annotated[int, typer.Option(help="Longest delay in periods.")] = 4,
) -> None:
    """Write PM files of a simulated network: history at once, then live, faster than real time."""
    from training.simulate import FaultRates, SimulateOptions
    from training.simulate.cli import simulate_with_progress

    chosen = {"kpis": kpi, "profiles": profile, "dialects": dialect}
    options = SimulateOptions(
        out=out,
        cells=cells,
        cells_per_gnb=cells_per_gnb,
        days=days,
        periods=periods,
        period_seconds=period_seconds,
        speed=speed,
        keep_days=keep_days,
        start=datetime.fromisoformat(start) if start else None,
        seed=seed,
        time_zone=time_zone,
        compact=compact,
        compress=gzip,
        history_layout=history_layout,
        faults=FaultRates(
            late=late,
            duplicate=duplicate,
            missing_file=missing_file,
            missing_counter=missing_counter,
            suspect=suspect,
            corrected=corrected,
            wrong_clock=wrong_clock,
            late_periods=late_periods,
        ),
        **{name: tuple(value) for name, value in chosen.items() if value},
    )
    simulate_with_progress(options)
