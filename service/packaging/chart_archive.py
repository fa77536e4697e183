"""A packaged chart that came from somewhere, read without trusting it."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from pathlib import PurePosixPath

from service.packaging.chart import Chart, chart_of
from service.packaging.errors import PackageError
from service.packaging.finding import Finding

# Helm's own bound on an unpacked chart is 100 MiB; ours packs to some tens of kilobytes.
MOST_BYTES = 100 << 20


def open_chart(content: bytes, place: str) -> Chart:
    """The chart in a package.

    Args:
        content: The gzipped tar file.
        place: What it is called, for messages.

    Raises:
        PackageError: It is no package of a chart.
    """
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as compressed:
            unpacked = compressed.read(MOST_BYTES + 1)
        if len(unpacked) > MOST_BYTES:
            raise PackageError(f"expected at most {MOST_BYTES} bytes unpacked in {place}, got more")
        with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:") as tar:
            files = _plain_files(tar, place)
    # What the library lets through of a damaged header, too.
    except (OSError, EOFError, ValueError, OverflowError, zlib.error, tarfile.TarError) as error:
        raise PackageError(f"expected a gzipped tar file in {place}, got: {error}") from error
    folders = {PurePosixPath(name).parts[0] for name in files}
    if len(folders) != 1:
        raise PackageError(
            f"expected one folder, the chart's, in {place}, got {sorted(folders)[:10]}"
        )
    (folder,) = folders
    inside = {name.removeprefix(f"{folder}/"): data for name, data in files.items()}
    chart = chart_of(inside, place)
    if chart.name != folder:
        raise PackageError(
            f"expected the folder {chart.name}, the chart's name, in {place}, got {folder}"
        )
    return chart


def check_chart(content: bytes, file_name: str) -> list[Finding]:
    """What is wrong with a packaged chart and its name; nothing where it can be used."""
    try:
        chart = open_chart(content, file_name)
    except PackageError as error:
        return [Finding("", str(error))]
    expected = f"{chart.name}-{chart.version}.tgz"
    findings = []
    if file_name != expected:
        findings.append(
            Finding("", f"expected the file name {expected}, as the chart inside, got {file_name}")
        )
    if "+" in chart.version:
        findings.append(
            Finding(
                "Chart.yaml",
                f"expected a version without build metadata, got {chart.version}: tools take "
                "versions that differ behind the plus sign alone for one",
            )
        )
    return findings


def _plain_files(tar: tarfile.TarFile, place: str) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for entry in tar:
        path = PurePosixPath(entry.name)
        if path.is_absolute() or ".." in path.parts or "\\" in entry.name:
            raise PackageError(f"expected paths inside the chart in {place}, got {entry.name!r}")
        if entry.isdir():
            continue
        # A hole of a sparse file takes no room in the archive, and all of it in memory.
        is_plain = entry.isfile() and not entry.issparse()
        file = tar.extractfile(entry) if is_plain else None
        if file is None or len(path.parts) < 2:
            raise PackageError(f"expected plain files in one folder in {place}, got {entry.name!r}")
        if str(path) in files:
            raise PackageError(f"expected each file once in {place}, got {entry.name!r} twice")
        files[str(path)] = file.read()
    return files
