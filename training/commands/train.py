"""`rancast train`: a checkpoint from files, from synthetic cells, or from both."""

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
from training.commands.options import Out, ProgressOption, ProgressStyle, RunName


def train(
    out: Out,
    data: Annotated[
        list[str] | None,
        typer.Argument(help="PM files, tables, directories, URLs; none: synthetic cells."),
    ] = None,
    preset: Annotated[str, typer.Option(help="Shape of the model: nano, small, base.")] = "small",
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
    """Train a checkpoint. A run that was stopped goes on where it was when called again."""
    from training.cli import train_with_progress
    from training.fit_config import FitConfig
    from training.session import session
    from training.storage import place_of
    from training.train import TrainOptions

    with session(json_lines=progress is ProgressStyle.JSON) as around:
        options = TrainOptions(
            out=place_of(out),
            data=tuple(map(place_of, data or ())),
            selection=select(
                kpi, cell, exclude, step_seconds, time_zone, keep_suspect, columns, country
            ),
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
            run_name=run_name,
        )
        unreadable = train_with_progress(options, load(catalogue), around)
    raise typer.Exit(1 if unreadable else 0)
