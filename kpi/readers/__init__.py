"""Readers: files and reports of PM data in, columnar observation batches out.

`read` takes one file of any supported format, `read_tree` a file or a folder. The format is found
by content. A file is read as a whole or refused as a whole with an `UnreadableFileError`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from kpi.catalogue import Catalogue, load_catalogue
from kpi.errors import UnreadableFileError
from kpi.observation import ObservationBatch
from kpi.readers import omes, pm_xml, table
from kpi.readers.detect import PARQUET_MAGIC, Format, detect
from kpi.readers.options import ColumnMapping, ReadLimits, ReadOptions
from kpi.readers.pm_report import read_report
from kpi.readers.source import read_bytes
from kpi.readers.xml_document import local_name, open_document, refuse_dtd

__all__ = [
    "ColumnMapping",
    "ReadLimits",
    "ReadOptions",
    "read",
    "read_report",
    "read_tree",
]

_FRAME_TAGS = 1024  # around the results of a file
_UNFINISHED = (".tmp", ".partial")


def read(
    path: Path,
    options: ReadOptions | None = None,
    catalogue: Catalogue | None = None,
    *,
    arrival_ms: int | None = None,
) -> Iterator[ObservationBatch]:
    """Batches of one file: PM XML (TS 32.435, TS 28.532, Nokia OMeS), PM report, CSV or Parquet.

    Args:
        path: The file, plain or gzip.
        options: How to read; the defaults of `ReadOptions` where None.
        catalogue: Canonical names and derived KPIs; None reads the built-in one.
        arrival_ms: When the file became available; its modification time where None.

    Raises:
        UnreadableFileError: The file cannot be read; raised before the first batch.
    """
    options = options or ReadOptions()
    catalogue = catalogue or load_catalogue()
    path = Path(path)
    modified_ms = _modified_ms(path)
    if arrival_ms is None:
        arrival_ms = modified_ms
    if _is_parquet(path):
        return table.read_parquet(path, options, catalogue, arrival_ms=arrival_ms)
    data = read_bytes(path, options.limits)
    match detect(data, path):
        case Format.XML:
            return _read_xml(data, path, options, catalogue, arrival_ms)
        case Format.JSON:
            return read_report(data, str(path), options, catalogue, arrival_ms=arrival_ms)
        case Format.PARQUET:
            raise UnreadableFileError(path, "expected plain Parquet, got it inside gzip; unpack it")
        case Format.CSV:
            return table.read_csv(data, path, options, catalogue, arrival_ms=arrival_ms)


def read_tree(
    path: Path,
    options: ReadOptions | None = None,
    catalogue: Catalogue | None = None,
    on_error: Callable[[UnreadableFileError], None] | None = None,
) -> Iterator[ObservationBatch]:
    """Batches of a file, or of all files below a folder in the order of their names.

    Hidden files and folders and `*.tmp`, `*.partial` are skipped: writers rename a file when it is
    whole.

    Args:
        path: A file or a folder.
        options: How to read.
        catalogue: Canonical names; None reads the built-in one once.
        on_error: Told of every file that cannot be read; the others are read all the same. Without
            it the first one ends the reading.

    Raises:
        UnreadableFileError: There is nothing at `path`, or no file in it; or, without `on_error`, a
            file cannot be read.
    """
    catalogue = catalogue or load_catalogue()
    path = Path(path)
    try:
        there, is_folder = path.exists(), path.is_dir()
    except OSError as error:
        raise UnreadableFileError(path, f"cannot be read: {error.strerror}") from error
    if not there:
        raise UnreadableFileError(path, "expected a file or a folder, found nothing")
    files = _files(path, on_error) if is_folder else [path]
    if not files:
        raise UnreadableFileError(path, "expected at least one file, the folder is empty")
    for file in files:
        try:
            yield from read(file, options, catalogue)
        except UnreadableFileError as error:
            if on_error is None:
                raise
            on_error(error)


def _files(folder: Path, on_error: Callable[[UnreadableFileError], None] | None) -> list[Path]:
    def refuse(error: OSError) -> None:
        refused = UnreadableFileError(error.filename, f"cannot be listed: {error.strerror}")
        if on_error is None:
            raise refused
        on_error(refused)

    found: list[Path] = []
    for root, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [
            Path(root, name)
            for name in names
            if not name.startswith(".") and not name.casefold().endswith(_UNFINISHED)
        ]
    return sorted(found)


def _read_xml(
    data: bytes, path: Path, options: ReadOptions, catalogue: Catalogue, arrival_ms: int
) -> Iterator[ObservationBatch]:
    _bound_tags(data, path, options)
    document = open_document(data, path, (pm_xml.MEASUREMENTS, omes.MEASUREMENTS))
    root = local_name(document.root)
    if root == "mdc":
        raise UnreadableFileError(
            path,
            "expected TS 32.435 or TS 28.532 XML, got the older <mdc> form of Ericsson nodes, "
            "which is not supported; set the node's PM file format to 3GPP TS 32.435 "
            "(measCollecFile), or convert the file to it",
        )
    refuse_dtd(document.root, path)
    if root in pm_xml.ROOTS:
        return pm_xml.read_pm_xml(document, path, options, catalogue, arrival_ms=arrival_ms)
    if root == omes.ROOT:
        return omes.read_omes(document, path, options, catalogue, arrival_ms=arrival_ms)
    raise UnreadableFileError(
        path,
        f"expected the root measCollecFile, measDataFile or OMeS, got <{root}>; this is no PM file",
    )


def _bound_tags(data: bytes, path: Path, options: ReadOptions) -> None:
    """Refuse a document of far more tags than the limit of samples leaves a use for.

    A result has two of them and an object at most four; an element costs 30 times its text.
    """
    most = 4 * options.limits.max_samples + _FRAME_TAGS
    if len(data) > most and (found := data.count(b"<")) > most:
        raise UnreadableFileError(
            path, f"expected at most {most} tags, got {found}; split the file by objects"
        )


def _is_parquet(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return stream.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC
    except OSError as error:
        raise UnreadableFileError(path, f"cannot be read: {error.strerror}") from error


def _modified_ms(path: Path) -> int:
    try:
        status = path.stat()
    except OSError as error:
        raise UnreadableFileError(path, f"cannot be read: {error.strerror}") from error
    # Before anything is opened: opening a pipe without a writer waits for ever.
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableFileError(path, "expected a regular file, got a folder, pipe or device")
    return status.st_mtime_ns // 1_000_000
