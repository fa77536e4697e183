"""`rancast gallery`: synthetic cells as a page, beside your own where you give them."""

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
    StepSeconds,
    TimeZone,
    load,
    select,
)


def gallery(
    out: Annotated[Path, typer.Option(help="Page to write (.html).")],
    data: Annotated[
        list[Path] | None,
        typer.Argument(help="Recorded cells to set beside them: PM files, tables, directories."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of all cells drawn.")] = 0,
    cells: Annotated[int, typer.Option(help="Rows of cells in a section.")] = 6,
    families: Annotated[int, typer.Option(help="Cells shown of each family.")] = 4,
    series: Annotated[int, typer.Option(help="Synthetic series behind the figures.")] = 400,
    kpi: Kpis = None,
    cell: Cells = None,
    exclude: Exclude = None,
    step_seconds: StepSeconds = None,
    time_zone: TimeZone = "UTC",
    keep_suspect: KeepSuspect = False,
    catalogue: Catalogues = None,
    columns: Columns = None,
) -> None:
    """Show the synthetic cells that training draws, beside recorded ones, with figures of both."""
    from training.gallery import GalleryOptions
    from training.gallery.cli import gallery_with_progress

    unreadable = gallery_with_progress(
        data or (),
        out,
        select(kpi, cell, exclude, step_seconds, time_zone, keep_suspect, columns),
        GalleryOptions(seed=seed, cells=cells, families=families, series=series),
        load(catalogue),
    )
    raise typer.Exit(1 if unreadable else 0)
