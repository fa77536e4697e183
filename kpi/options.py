"""What every command that reads files can be told about them, as command-line options.

Only what a command line needs is imported here; readers and grids load when a selection is made.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from kpi.catalogue import Catalogue
    from kpi.history import Selection

Paths = Annotated[list[Path], typer.Argument(help="PM files, tables (CSV, Parquet), directories.")]
Kpis = Annotated[list[str] | None, typer.Option("--kpi", help="KPI to use; repeat for more.")]
Cells = Annotated[
    list[str] | None,
    typer.Option("--cell", help="Cells to use, a pattern such as '*NRCellDU=*'; repeatable."),
]
Exclude = Annotated[
    list[str] | None, typer.Option("--exclude", help="Cells to leave out, a pattern; repeatable.")
]
StepSeconds = Annotated[
    float | None,
    typer.Option(help="Sampling step where cells report at several.", show_default="finest"),
]
TimeZone = Annotated[
    str, typer.Option(help="Zone of the cells' clock, and of stamps without offset.")
]
Country = Annotated[
    str | None,
    typer.Option(
        help="Country whose public holidays the cells keep, as in ES or ES-CT.",
        show_default="no holidays",
    ),
]
KeepSuspect = Annotated[
    bool, typer.Option("--keep-suspect", help="Use values that the network marked as suspect.")
]
Catalogues = Annotated[
    list[Path] | None,
    typer.Option("--catalogue", help="Your own KPI catalogue (TOML); repeatable."),
]
Columns = Annotated[
    str | None,
    typer.Option(
        help="Meaning of a table's columns: timestamp=date,cell=site; kpi= and value=; stamp=end; "
        "period_seconds=900.",
        show_default="usual names",
    ),
]


def load(extensions: list[Path] | None) -> Catalogue:
    """The built-in catalogue with the user's files over it.

    Raises:
        CatalogueError: A file cannot be used.
    """
    from kpi.catalogue import load_catalogue

    return load_catalogue(extensions or ())


def select(
    kpis: list[str] | None,
    cells: list[str] | None,
    exclude: list[str] | None,
    step_seconds: float | None,
    time_zone: str,
    keep_suspect: bool,
    columns: str | None,
    country: str | None = None,
) -> Selection:
    """What to take from the files, in the order of the options above.

    Raises:
        ValueError: A column or time zone cannot be used; the message says what was expected.
    """
    from kpi.history import Selection, parse_columns
    from kpi.readers import ReadOptions

    return Selection(
        kpis=tuple(kpis or ()),
        cells=tuple(cells or ()),
        exclude=tuple(exclude or ()),
        step_seconds=step_seconds,
        country=country,
        reading=ReadOptions(
            time_zone=time_zone,
            keep_suspect=keep_suspect,
            columns=parse_columns(columns) if columns else None,
        ),
    )
