"""Files as histories: every cell of a file, a directory or a table on its regular grid.

The offline jobs (forecast, train, backtest) read through this; the service merges the same batches
into its store. A counter that trains is therefore a counter that serves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpi.catalogue import Catalogue
from kpi.errors import NothingSelectedError, UnreadableFileError
from kpi.grid import to_windows
from kpi.observation import ObservationBatch
from kpi.readers import ColumnMapping, ReadOptions, read_tree
from kpi.window import KpiWindow

MAPPED = ("timestamp", "cell", "kpi", "value", "suspect", "stamp", "period_seconds")


@dataclass(frozen=True)
class Selection:
    """What to take from the files.

    Attributes:
        kpis: Names or aliases of the KPIs to keep, all where empty.
        cells: Shell patterns of cell names to keep, for example `*NRCellDU=*`; all where empty.
        exclude: Shell patterns of cell names to leave out.
        step_seconds: Sampling step to use where cells report at several, the finest by default.
        country: ISO 3166 code of the country whose holidays the cells keep, handed on to the
            windows.
        reading: How to read the files.
    """

    kpis: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    step_seconds: float | None = None
    country: str | None = None
    reading: ReadOptions = field(default_factory=ReadOptions)


def load_windows(
    paths: Sequence[Path],
    selection: Selection,
    catalogue: Catalogue,
    on_error: Callable[[UnreadableFileError], None],
) -> list[KpiWindow]:
    """Every selected cell of the files, one window a cell, ordered by name.

    Args:
        paths: Files and directories.
        selection: What to take.
        catalogue: KPI catalogue.
        on_error: Takes each file that could not be read; the others are used.

    Raises:
        UnreadableFileError: A path does not exist, or a directory holds no file.
        NothingSelectedError: Nothing is left after reading and selecting.
    """
    windows = to_windows(
        _batches(paths, selection, catalogue, on_error),
        catalogue=catalogue,
        step_ms=None if selection.step_seconds is None else round(selection.step_seconds * 1000),
        time_zone=selection.reading.time_zone,
        country=selection.country,
        keep_suspect=selection.reading.keep_suspect,
    )
    windows = [window for window in windows if not np.isnan(window.values).all()]
    if not windows:
        raise NothingSelectedError(
            f"expected cells with values in {', '.join(path.name for path in paths)}, found none "
            f"that the selection keeps (KPIs: {', '.join(selection.kpis) or 'any'}; cells: "
            f"{', '.join(selection.cells) or 'any'}; without: "
            f"{', '.join(selection.exclude) or 'none'})"
        )
    return sorted(windows, key=lambda window: window.cell)


def parse_columns(text: str) -> ColumnMapping:
    """A mapping written as `timestamp=date,cell=site,stamp=end`; the keys are its attributes.

    Raises:
        ValueError: A part is no `key=value`, or the key or value is not known.
    """
    parts: dict[str, Any] = {}
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not value or key not in MAPPED:
            raise ValueError(
                f"expected parts such as timestamp=date with a key from {', '.join(MAPPED)}, "
                f"got {part!r}"
            )
        parts[key] = _seconds(value) if key == "period_seconds" else value
    return ColumnMapping(**parts)


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ValueError(f"expected period_seconds as a number, got {text!r}") from error


def _batches(
    paths: Sequence[Path],
    selection: Selection,
    catalogue: Catalogue,
    on_error: Callable[[UnreadableFileError], None],
) -> Iterator[ObservationBatch]:
    for path in paths:
        for batch in read_tree(path, selection.reading, catalogue, on_error):
            yield _select(batch, selection, catalogue)


def _select(
    batch: ObservationBatch, selection: Selection, catalogue: Catalogue
) -> ObservationBatch:
    keep = np.ones(len(batch), dtype=np.bool_)
    if selection.kpis:
        wanted = {catalogue.canonical(name) for name in selection.kpis}
        keep &= _named(batch.kpis, lambda name: name in wanted)[batch.kpi_index]
    if selection.cells:
        keep &= _named(batch.cells, lambda name: _matches(name, selection.cells))[batch.cell_index]
    if selection.exclude:
        left_out = _named(batch.cells, lambda name: _matches(name, selection.exclude))
        keep &= ~left_out[batch.cell_index]
    return batch if keep.all() else batch.take(keep)


def _named(names: Sequence[str], test: Callable[[str], bool]) -> NDArray[np.bool_]:
    return np.fromiter((test(name) for name in names), dtype=np.bool_, count=len(names))


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
