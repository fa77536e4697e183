"""`rancast pretrain`: the shipped checkpoints, made again by their recipes."""

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


def pretrain(
    out: Out,
    data: Annotated[
        list[str] | None,
        typer.Argument(help="Recordings to learn from besides synthetic cells; none: those only."),
    ] = None,
    preset: Annotated[str, typer.Option(help="Recipe: nano, small, base.")] = "small",
    seed: Annotated[int, typer.Option(help="Of the first weights and of all data drawn.")] = 0,
    steps: Annotated[
        int | None, typer.Option(help="Optimiser steps.", show_default="the recipe's")
    ] = None,
    version: Annotated[str, typer.Option(help="Version that the checkpoint bears.")] = "1.0.0",
    compiled: Annotated[
        bool,
        typer.Option("--compile/--no-compile", help="Compile the model; needs a C++ compiler."),
    ] = True,
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
    """Make a shipped checkpoint again. A run that was stopped goes on when called again."""
    from training.cli import pretrain_with_progress
    from training.pretrain import PretrainOptions
    from training.session import session
    from training.storage import place_of

    with session(json_lines=progress is ProgressStyle.JSON) as around:
        options = PretrainOptions(
            preset=preset,
            out=place_of(out),
            data=tuple(map(place_of, data or ())),
            selection=select(
                kpi, cell, exclude, step_seconds, time_zone, keep_suspect, columns, country
            ),
            seed=seed,
            steps=steps,
            version=version,
            compiled=compiled,
            threads=threads,
            run_name=run_name,
        )
        unreadable = pretrain_with_progress(options, load(catalogue), around)
    raise typer.Exit(1 if unreadable else 0)
