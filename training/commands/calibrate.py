"""`rancast calibrate`: make a checkpoint's quantiles cover what they say on your own cells."""

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


def calibrate(
    checkpoint: Annotated[Path, typer.Argument(help="File to calibrate, or rancast-small.")],
    data: Paths,
    out: Annotated[Path, typer.Option(help="Checkpoint to write (.safetensors).")],
    calibration: Annotated[
        float, typer.Option(help="Share of each history, at its end, to calibrate on.")
    ] = 0.3,
    max_origins: Annotated[int, typer.Option(help="Most origins over all cells.")] = 1000,
    horizon: Annotated[
        int | None, typer.Option(help="Steps to forecast.", show_default="the checkpoint's most")
    ] = None,
    history_steps: Annotated[
        int | None, typer.Option(help="Most samples that a forecast sees.", show_default="all")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the choice of origins.")] = 0,
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
    """Make a checkpoint's quantiles cover what they say on your cells; its weights stay.

    Exit status 1: some files could not be read (they are named), the others were used.
    """
    from rich.console import Console

    from training.calibrate import CalibrateConfig
    from training.calibrate_cli import calibrate_with_progress

    unreadable = calibrate_with_progress(
        checkpoint,
        data,
        select(kpi, cell, exclude, step_seconds, time_zone, keep_suspect, columns, country),
        CalibrateConfig(
            calibration_ratio=calibration,
            max_origins=max_origins,
            horizon=horizon,
            history_steps=history_steps,
            seed=seed,
        ),
        load(catalogue),
        Console(),
        out=out,
    )
    raise typer.Exit(1 if unreadable else 0)
