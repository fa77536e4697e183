"""`rancast calibrate`: make a checkpoint's quantiles cover what they say on your own cells."""

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
from training.commands.options import Data, Out, ProgressOption, ProgressStyle


def calibrate(
    checkpoint: Annotated[str, typer.Argument(help="File or URL to calibrate, or rancast-small.")],
    data: Data,
    out: Out,
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
    threads: Annotated[
        int | None, typer.Option(help="Threads to compute with.", show_default="one a core")
    ] = None,
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
    """Make a checkpoint's quantiles cover what they say on your cells; its weights stay.

    Exit status 1: some files could not be read (they are named), the others were used.
    """
    from training.calibrate import CalibrateConfig
    from training.calibrate_cli import CalibrateOptions, calibrate_with_progress
    from training.session import session
    from training.storage import place_of

    with session(json_lines=progress is ProgressStyle.JSON) as around:
        options = CalibrateOptions(
            base=place_of(checkpoint),
            data=tuple(map(place_of, data)),
            out=place_of(out),
            selection=select(
                kpi, cell, exclude, step_seconds, time_zone, keep_suspect, columns, country
            ),
            calibration=CalibrateConfig(
                calibration_ratio=calibration,
                max_origins=max_origins,
                horizon=horizon,
                history_steps=history_steps,
                seed=seed,
            ),
            threads=threads,
        )
        unreadable = calibrate_with_progress(options, load(catalogue), around)
    raise typer.Exit(1 if unreadable else 0)
