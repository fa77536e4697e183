"""The commands that forecast: `serve`, `forecast`, `demo`, `model`, `doctor`, `compile`, `plan`.

A command is its options and its help; what it does is imported when it is called.
"""

from __future__ import annotations

import os
import signal
import sys
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
from model.inference_path import PrecisionChoice

Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint", help="File, or name of one that ships.", show_default="rancast-small"
    ),
]


BACKGROUND_NICENESS = 10


def serve(
    host: Annotated[str | None, typer.Option(help="Address to bind.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to bind.")] = None,
    profile: Annotated[str | None, typer.Option(help="near-rt or non-rt.")] = None,
    checkpoint: Checkpoint = None,
    journal: Annotated[Path | None, typer.Option(help="SQLite journal of the store.")] = None,
    ingest: Annotated[Path | None, typer.Option(help="Directory of PM files to watch.")] = None,
) -> None:
    """Serve forecasts over REST. Every setting is also a RANCAST_ variable; options win."""
    from service.server import serve as run
    from service.settings import load_settings

    options = {"host": host, "port": port, "profile": profile, "model_path": checkpoint}
    folders = {"journal_path": journal, "ingest_directory": ingest}
    given = {name: value for name, value in (options | folders).items() if value is not None}
    settings = load_settings(**given)
    code = run(settings)
    raise typer.Exit(code)


def forecast(
    paths: Paths,
    out: Annotated[Path | None, typer.Option(help="A .csv, .json, .parquet or .html file.")] = None,
    horizon: Annotated[int, typer.Option(help="Steps to forecast.")] = 24,
    quantiles: Annotated[str, typer.Option(help="Quantile levels.")] = "0.1,0.5,0.9",
    checkpoint: Checkpoint = None,
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
    """Forecast the cells of PM files or tables, without a server.

    Exit status 1: some files could not be read (they are named), the others were forecast.
    """
    from service.offline.cli import forecast_with_progress
    from service.offline.forecast import ForecastJob

    known = load(catalogue)
    selection = select(kpi, cell, exclude, step_seconds, time_zone, keep_suspect, columns, country)
    job = ForecastJob(tuple(paths), selection, horizon, _levels(quantiles))
    unreadable = forecast_with_progress(job, known, checkpoint, out)
    raise typer.Exit(1 if unreadable else 0)


def demo(
    data: Annotated[
        Path | None, typer.Option(help="Your own PM files or tables.", show_default="simulated")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port on 127.0.0.1.", show_default="8080, or a free one")
    ] = None,
) -> None:
    """Serve forecasts of a simulated network, or of your own files, until stopped."""
    from service.demo import run_demo

    code = run_demo(data, port)
    raise typer.Exit(code)


def model(checkpoint: Checkpoint = None) -> None:
    """Show where a checkpoint comes from and how well it did."""
    from service.offline.cli import show_checkpoint

    show_checkpoint(checkpoint)


def doctor(
    checkpoint: Checkpoint = None,
    build: Annotated[
        bool, typer.Option("--build", help="Build the native code first, where it is missing.")
    ] = False,
    catalogue: Catalogues = None,
) -> None:
    """Say which code makes forecasts on this machine, why, and how fast.

    Exit status 1: forecasts cannot be made.
    """
    from service.offline.cli import examine_machine

    if build:
        from model.native_code import build_native_code
        from service.codecs.native.__main__ import build as build_reader

        for trouble in (*build_native_code(), build_reader()):
            if trouble is not None:
                sys.stderr.write(f"{trouble}\n")
    raise typer.Exit(0 if examine_machine(checkpoint, load(catalogue)) else 1)


def compile_(
    checkpoint: Annotated[
        Path | None,
        typer.Argument(help="File, or name of one that ships.", show_default="rancast-small"),
    ] = None,
    precision: Annotated[
        PrecisionChoice,
        typer.Option(help="Of the products; auto is the fastest whose self-test holds."),
    ] = PrecisionChoice.AUTO,
    background: Annotated[
        bool, typer.Option("--background", help="Give way to other processes.")
    ] = False,
) -> None:
    """Compile a checkpoint for this machine; `rancast serve` then finds it in the cache.

    The cache is the folder RANCAST_CACHE_DIR, by default ~/.cache/rancast. A C++ compiler is
    needed.
    """
    from service.loading import precision_of
    from service.offline.compiling import compile_in_background, compile_with_progress

    # The default of a signal to end leaves half-made files behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if background:
        os.nice(BACKGROUND_NICENESS)
        compile_in_background(checkpoint, precision_of(precision))
    else:
        compile_with_progress(checkpoint, precision_of(precision))


def plan(
    checkpoint: Checkpoint = None,
    horizon: Annotated[int, typer.Option(help="Steps to forecast.")] = 24,
    kpis: Annotated[int, typer.Option(help="KPIs of a cell.")] = 4,
    step_seconds: Annotated[float, typer.Option(help="Length of a sample.")] = 900,
    history: Annotated[
        int | None,
        typer.Option(
            help="Samples of each KPI that the store keeps or a request brings.",
            show_default="RANCAST_HISTORY_STEPS",
        ),
    ] = None,
    context: Annotated[
        int | None,
        typer.Option(help="Samples of context at most.", show_default="the checkpoint's"),
    ] = None,
    cells: Annotated[int, typer.Option(help="Cells of one request that has to be in time.")] = 32,
    near_rt_ms: Annotated[
        float | None, typer.Option(help="Budget of the near-RT loop.", show_default="the profile's")
    ] = None,
    budget_ms: Annotated[
        list[float] | None,
        typer.Option(
            help="A latency budget of interest; repeat it for several.",
            show_default="10 20 50 100 500 1000 5000",
        ),
    ] = None,
    period_seconds: Annotated[
        list[float] | None,
        typer.Option(
            help="Each cell is forecast once in so many seconds; repeat it for several.",
            show_default="60 900",
        ),
    ] = None,
    load: Annotated[float, typer.Option(help="How busy the node may be on average, 0 to 1.")] = 0.7,
    threads: Annotated[
        int | None, typer.Option(help="Threads of one inference.", show_default="RANCAST_THREADS")
    ] = None,
    precision: Annotated[
        PrecisionChoice | None,
        typer.Option(help="Of compiled code.", show_default="RANCAST_PRECISION"),
    ] = None,
    seconds: Annotated[
        float, typer.Option(help="Time to measure; fewer are quicker and less certain.")
    ] = 60,
    json: Annotated[Path | None, typer.Option(help="File for all of it as JSON.")] = None,
    plot: Annotated[Path | None, typer.Option(help="A .html, .svg or .png file.")] = None,
) -> None:
    """Measure this node, and say in which control loops its forecasts are in time.

    Compiled code is taken where `rancast compile` has left it. Run it while nothing else runs.
    """
    from service.plan.cli import Options, plan_with_progress
    from service.settings import load_settings

    chosen = {"model_path": checkpoint, "threads": threads, "precision": precision}
    settings = load_settings(**{name: v for name, v in chosen.items() if v is not None})
    options = Options(
        horizon=horizon,
        kpis=kpis,
        step_seconds=step_seconds,
        cells=cells,
        seconds=seconds,
        history_steps=history,
        context_steps=context,
        near_rt_ms=near_rt_ms,
        budgets_ms=budget_ms or (),
        periods_s=period_seconds or (),
        load_ratio=load,
    )
    plan_with_progress(options, settings, json, plot)


def _levels(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"expected numbers such as 0.1,0.5,0.9, got {text!r}") from None
