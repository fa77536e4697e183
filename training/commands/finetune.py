"""`rancast finetune`: a checkpoint tuned to a network's own counters."""

from __future__ import annotations

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
    StepSeconds,
    TimeZone,
    load,
    select,
)
from training.commands.options import Data, Out, ProgressOption, ProgressStyle, RunName


def finetune(
    checkpoint: Annotated[str, typer.Argument(help="File or URL to start from, or rancast-small.")],
    data: Data,
    out: Out,
    minutes: Annotated[
        float | None, typer.Option(help="About how long it may take.", show_default="no limit")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Optimiser steps.", show_default="by the amount of data")
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Peak learning rate.", show_default="by the days of data")
    ] = None,
    horizon: Annotated[int, typer.Option(help="Steps ahead that matter most.")] = 24,
    history_steps: Annotated[
        int, typer.Option(help="Most samples before a forecast, as the service will have.")
    ] = 1440,
    held_back: Annotated[
        float | None,
        typer.Option(
            help="Share of each history, at its end, that compares and calibrates.",
            show_default="0.15, at least a day",
        ),
    ] = None,
    synthetic: Annotated[float, typer.Option(help="Share of synthetic batches.")] = 0.1,
    series: Annotated[int, typer.Option(help="Series in a batch.")] = 32,
    seed: Annotated[int, typer.Option(help="Of all data drawn.")] = 0,
    version: Annotated[
        str | None,
        typer.Option(help="Version that the checkpoint bears.", show_default="as CHECKPOINT"),
    ] = None,
    threads: Annotated[int, typer.Option(help="Threads to compute with.")] = 1,
    run_name: RunName = "",
    kpi: Kpis = None,
    cell: Cells = None,
    exclude: Exclude = None,
    step_seconds: StepSeconds = None,
    time_zone: TimeZone = "UTC",
    country: Country = None,
    keep_suspect: KeepSuspect = False,
    catalogue: Catalogues = None,
    columns: Columns = None,
    progress: ProgressOption = ProgressStyle.AUTO,
) -> None:
    """Tune a checkpoint to your own cells; the weights change only where forecasts get better."""
    from training.finetune import FinetuneOptions
    from training.finetune_cli import finetune_with_progress
    from training.session import session
    from training.storage import place_of
    from training.tuning import TuneConfig

    with session(json_lines=progress is ProgressStyle.JSON) as around:
        options = FinetuneOptions(
            base=place_of(checkpoint),
            data=tuple(map(place_of, data)),
            out=place_of(out),
            selection=select(
                kpi, cell, exclude, step_seconds, time_zone, keep_suspect, columns, country
            ),
            version=version,
            tune=TuneConfig(
                horizon=horizon,
                history_steps=history_steps,
                held_back_ratio=held_back,
                steps=steps,
                learning_rate=learning_rate,
                synthetic_ratio=synthetic,
                series=series,
                seed=seed,
            ),
            minutes=minutes,
            threads=threads,
            run_name=run_name,
        )
        unreadable = finetune_with_progress(options, load(catalogue), around)
    raise typer.Exit(1 if unreadable else 0)
