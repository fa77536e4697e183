"""`rancast pretrain`: the shipped checkpoints, made again by their recipes."""

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
    StepSeconds,
    TimeZone,
    load,
    select,
)


def pretrain(
    out: Annotated[Path, typer.Option(help="Checkpoint to write (.safetensors).")],
    data: Annotated[
        list[Path] | None,
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
    """Make a shipped checkpoint again. A run that was stopped goes on when called again."""
    from rich.console import Console

    from training.cli import pretrain_with_progress
    from training.pretrain import PretrainOptions

    options = PretrainOptions(
        preset=preset,
        out=out,
        data=tuple(data or ()),
        selection=select(
            kpi, cell, exclude, step_seconds, time_zone, keep_suspect, columns, country
        ),
        seed=seed,
        steps=steps,
        version=version,
        compiled=compiled,
        threads=threads,
    )
    unreadable = pretrain_with_progress(options, load(catalogue), Console(stderr=True))
    raise typer.Exit(1 if unreadable else 0)
