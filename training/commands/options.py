"""What the commands that train have in common on their command lines."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

Data = Annotated[
    list[str],
    typer.Argument(help="PM files, tables (CSV, Parquet), directories; paths or URLs (s3://…)."),
]
Out = Annotated[
    str, typer.Option(help="Checkpoint to write (.safetensors), a path or URL (s3://…).")
]


RunName = Annotated[
    str,
    typer.Option(
        help="Kept with the saved state: one of this name but of other data is begun again, where "
        "it would be an error.",
        show_default="none",
    ),
]


class ProgressStyle(StrEnum):
    """How a run tells where it stands."""

    AUTO = "auto"
    JSON = "json"


ProgressOption = Annotated[
    ProgressStyle,
    typer.Option(
        "--progress",
        help="auto: a bar on a terminal, else lines, on stderr. json: one object a line on stdout.",
    ),
]
