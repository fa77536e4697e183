"""The terminal side of the gallery: a progress bar, and where the page is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as ProgressBar

from kpi.catalogue import Catalogue
from kpi.errors import UnreadableFileError
from kpi.history import Selection, load_windows
from training.errors import DataError
from training.gallery.page import GalleryOptions, gallery_page


def gallery_with_progress(
    data: Sequence[Path],
    out: Path,
    selection: Selection,
    options: GalleryOptions,
    catalogue: Catalogue,
) -> int:
    """Write the page and say where it is.

    Returns:
        The number of files that could not be read.

    Raises:
        DataError: `out` is a directory.
    """
    if out.is_dir():
        raise DataError(f"expected a file to write the page to, {out} is a directory")
    console = Console(stderr=True)
    unreadable: list[UnreadableFileError] = []

    def name_file(error: UnreadableFileError) -> None:
        unreadable.append(error)
        console.print(f"not read: {error}", style="yellow", markup=False, highlight=False)

    windows = load_windows(data, selection, catalogue, name_file) if data else []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with ProgressBar(*columns, console=console) as bar:
        task = bar.add_task("cells", total=None)
        page = gallery_page(
            windows,
            options,
            lambda title, done, total: bar.update(
                task, description=title, completed=done, total=total
            ),
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page, encoding="utf-8")
    console.print(f"gallery written to {out}", markup=False, highlight=False)
    return len(unreadable)
