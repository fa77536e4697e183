"""The Helm chart's folder, and the package that is made of it without Helm."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import service
from service.packaging.archive import tar_gz
from service.packaging.document import read_yaml, shown
from service.packaging.errors import PackageError
from service.packaging.ignore import FILE_NAME as IGNORE_FILE
from service.packaging.ignore import IgnoreRules, ignore_rules
from service.packaging.version import SEMVER, content_version

CHART_FILE = "Chart.yaml"
VALUES_FILE = "values.yaml"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,51}[a-z0-9])?")
# What Helm installs: charts of its formats 1 and 2 that are no libraries.
_FORMATS = ("v1", "v2")
_KINDS = (None, "application")
_VERSION_LINE = re.compile(r"^version:[^\n]*$", re.MULTILINE)
_OWN_CHART = Path("helm", "rancast")


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as it lies in a folder or in a package.

    Attributes:
        name: Its name.
        version: Its version.
        app_version: Version of what it installs; empty where it states none.
        values: Its default values.
        files: Content by path, relative to the chart's folder.
    """

    name: str
    version: str
    app_version: str
    values: Mapping[str, Any]
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class ChartPackage:
    """A chart as chart repositories keep it.

    Attributes:
        chart: What is inside, under the version that it has there.
        content: The gzipped tar file.
    """

    chart: Chart
    content: bytes

    @property
    def file_name(self) -> str:
        """Name and version, as Helm names the file."""
        return f"{self.chart.name}-{self.chart.version}.tgz"


def find_chart(folder: Path | None) -> Path:
    """The chart's folder: the one given, else the one beside the sources that are running.

    Raises:
        PackageError: There is none.
    """
    own = Path(service.__file__).resolve().parents[1] / _OWN_CHART
    chosen = own if folder is None else folder
    if not (chosen / CHART_FILE).is_file():
        mend = (
            "an installed rancast brings no chart: run this in a checkout, or name the folder of "
            "a chart with --chart"
            if folder is None
            else "name the folder of a chart"
        )
        raise PackageError(f"expected a chart with {CHART_FILE} in {chosen}, got none; {mend}")
    return chosen


def read_chart(folder: Path) -> Chart:
    """The chart in a folder, without what its `.helmignore` leaves out.

    Raises:
        PackageError: A link, a pattern that cannot be used, or no chart.
        OSError: Something cannot be read.
    """
    ignored = folder / IGNORE_FILE
    lines = ignored.read_text(encoding="utf-8").splitlines() if ignored.is_file() else []
    return chart_of(
        {str(path): (folder / path).read_bytes() for path in _files(folder, ignore_rules(lines))},
        str(folder),
    )


def chart_of(files: Mapping[str, bytes], place: str) -> Chart:
    """A chart made of files.

    Args:
        files: Content by path, relative to the chart's folder.
        place: Where they are from, for messages.

    Raises:
        PackageError: They are no chart.
    """
    stated = _yaml_object(files, CHART_FILE, place)
    name, version = stated.get("name"), stated.get("version")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise PackageError(
            f"expected a name of lower-case letters, digits and hyphens in {place}: {CHART_FILE}, "
            f"got {shown(name)}"
        )
    if not isinstance(version, str) or not SEMVER.fullmatch(version):
        raise PackageError(
            f"expected a semantic version such as 0.1.0 in {place}: {CHART_FILE}, got "
            f"{shown(version)}"
        )
    _check_installable(stated, files, place)
    values = _yaml_object(files, VALUES_FILE, place) if VALUES_FILE in files else {}
    app_version = stated.get("appVersion", "")
    return Chart(
        name, version, app_version if isinstance(app_version, str) else "", values, dict(files)
    )


def package_chart(chart: Chart) -> ChartPackage:
    """The package of a chart, under a version that ends in a digest of its content.

    Raises:
        PackageError: The chart's own version cannot be continued, or is not on one line.
    """
    version = content_version(chart.version, chart.files)
    text = chart.files[CHART_FILE].decode("utf-8")
    # By its line, so that comments and order stay as people wrote them.
    renamed, found = _VERSION_LINE.subn(f"version: {version}", text)
    if found != 1:
        raise PackageError(
            f"expected one line that begins with version: in {CHART_FILE}, got {found}"
        )
    files = {**chart.files, CHART_FILE: renamed.encode("utf-8")}
    inside = chart_of(files, chart.name)
    packed = tar_gz({f"{chart.name}/{path}": content for path, content in files.items()})
    return ChartPackage(inside, packed)


def _check_installable(stated: Mapping[str, Any], files: Mapping[str, bytes], place: str) -> None:
    """Refuse what Helm packs and its linter, or its installer, does not take."""
    if stated.get("apiVersion") not in _FORMATS:
        raise PackageError(
            f"expected apiVersion {' or '.join(_FORMATS)} in {place}: {CHART_FILE}, got "
            f"{shown(stated.get('apiVersion'))}"
        )
    if stated.get("type") not in _KINDS:
        raise PackageError(
            f"expected a chart of the type application in {place}: {CHART_FILE}, got "
            f"{shown(stated['type'])}: Helm installs no other"
        )
    needed = stated.get("dependencies")
    names = [each.get("name") for each in needed or () if isinstance(each, dict)]
    there = {name.split("/")[1] for name in files if name.startswith("charts/")}
    missing = [
        name
        for name in names
        if not any(each == name or each.startswith(f"{name}-") for each in there)
    ]
    if missing:
        raise PackageError(
            f"expected the charts that {CHART_FILE} depends on in charts/ of {place}, got none of "
            f"{shown(missing)}; run helm dependency build"
        )


def _files(folder: Path, rules: IgnoreRules, inside: str = "") -> Iterator[PurePosixPath]:
    for entry in sorted((folder / inside).iterdir()):
        path = PurePosixPath(inside, entry.name)
        is_folder = entry.is_dir()
        if rules.leaves_out(path, is_folder=is_folder):
            continue
        if entry.is_symlink():
            raise PackageError(
                f"expected files in {folder}, got a link, {path}; put what it leads to in its place"
            )
        if is_folder:
            yield from _files(folder, rules, str(path))
        elif not entry.is_file():
            raise PackageError(
                f"expected files and folders in {folder}, got {path}, a device or pipe"
            )
        else:
            yield path


def _yaml_object(files: Mapping[str, bytes], name: str, place: str) -> dict[str, Any]:
    if name not in files:
        raise PackageError(f"expected {name} in {place}, got {sorted(files)[:10]}")
    try:
        stated = read_yaml(files[name])
    except PackageError as error:
        raise PackageError(f"{place}: {name}: {error}") from error
    if stated is None:
        return {}
    if not isinstance(stated, dict):
        raise PackageError(
            f"expected keys and values in {place}: {name}, got a {type(stated).__name__}"
        )
    return stated
