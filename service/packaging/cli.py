"""The terminal side of `rancast package`: what is read, what is written, what is wrong."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rich.console import Console

from model.files import replace_file
from service.descriptor import read_descriptor
from service.errors import DescriptorError
from service.packaging.chart import find_chart, package_chart, read_chart
from service.packaging.chart_archive import check_chart
from service.packaging.csar import CsarOptions, package_csar
from service.packaging.csar_contents import MOST_BYTES
from service.packaging.csar_rules import check_csar
from service.packaging.document import read_json
from service.packaging.errors import PackageError
from service.packaging.finding import Finding
from service.packaging.image import image_reference
from service.packaging.xapp import SCHEMA_FILE, XappOptions, package_xapp
from service.packaging.xapp_rules import check_xapp_files

# Whoever builds reproducibly sets it (https://reproducible-builds.org/specs/source-date-epoch/).
EPOCH_VARIABLE = "SOURCE_DATE_EPOCH"
# The first moment that a zip file can state: of a package whose time nobody said.
_EPOCH = datetime(1980, 1, 1, tzinfo=UTC)


def write_chart(chart: Path | None, out: Path) -> None:
    """Write the packaged chart.

    Raises:
        PackageError: There is no chart, or none that can be packaged.
    """
    package = package_chart(read_chart(find_chart(chart)))
    _write({package.file_name: package.content}, out)


def write_xapp(
    name: str, base_version: str | None, image: str, settings: Sequence[str], out: Path
) -> None:
    """Write descriptor and controls schema.

    Args:
        name: Name of the xApp.
        base_version: Version that people give it; rancast's own by default.
        image: The service's image.
        settings: Settings as NAME=VALUE.
        out: Folder to write to.

    Raises:
        PackageError: The xApp would be refused, or would not run.
    """
    options = XappOptions(
        name, base_version or version("rancast"), image_reference(image), _pairs(settings)
    )
    _write(package_xapp(options), out)


def write_csar(
    chart: Path | None,
    out: Path,
    *,
    release: str,
    namespace: str,
    provider: str,
    image: str,
    push_uri: str,
    pull_uri: str,
    overrides: Sequence[str],
    extra: Path | None,
    published: bool,
) -> None:
    """Write the rApp package.

    Args:
        chart: Folder of the chart; the one beside the sources by default.
        out: Folder to write to.
        release: Name of the Helm release and of the rApp.
        namespace: Namespace that it is installed in.
        provider: Who provides the rApp.
        image: The service's image.
        push_uri: Where the manager sends the chart.
        pull_uri: Where the chart is pulled from.
        overrides: Values over the chart's own, as KEY=VALUE.
        extra: Folder with more files, laid out as in the package.
        published: Whether its API is published in the service registry.

    Raises:
        PackageError: The rApp would be refused, or could not be installed.
    """
    options = CsarOptions(
        release=release,
        namespace=namespace,
        provider=provider,
        image=image_reference(image),
        push_uri=push_uri,
        pull_uri=pull_uri,
        overrides=_pairs(overrides),
        released=_released(os.environ),
        extra={} if extra is None else _extra(extra),
        created_by=f"rancast {version('rancast')}",
        published=published,
    )
    package = package_chart(read_chart(find_chart(chart)))
    _write({options.file_name: package_csar(package, options)}, out)


def check_packages(paths: Iterable[Path], schema: Path | None) -> bool:
    """Say what is wrong with packages; whether nothing is.

    Args:
        paths: A .csar, a .tgz or the .json of a descriptor each.
        schema: The controls schema of the descriptors; `schema.json` beside each by default.

    Raises:
        PackageError: A file is of no known kind.
    """
    console, fine = Console(), True
    for path in paths:
        findings = _findings(path, schema)
        for finding in findings:
            _say(console, f"{path}: {finding}")
        if not findings:
            _say(console, f"{path}: fine")
        fine = fine and not findings
    return fine


def _findings(path: Path, schema: Path | None) -> list[Finding]:
    suffix = path.suffix.lower()
    if suffix == ".csar":
        return check_csar(_bounded(path), path.name)
    if suffix == ".tgz":
        return check_chart(_bounded(path), path.name)
    if suffix == ".json":
        beside = path.parent / SCHEMA_FILE
        chosen = schema or (beside if beside.is_file() else None)
        try:
            # As strictly as dms_cli reads it; the service itself takes more.
            read_json(_bounded(path))
            text = read_descriptor(path).text
        except (DescriptorError, PackageError) as error:
            return [Finding("", str(error))]
        return check_xapp_files(text, None if chosen is None else _bounded(chosen))
    raise PackageError(
        f"expected a .csar, a .tgz or a descriptor's .json, got {path}; name it after what it is"
    )


def _bounded(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise PackageError(f"expected at most {MOST_BYTES} bytes in {path}, got more")
    return content


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise PackageError(f"expected --set NAME=VALUE, got {text!r}")
        if name in pairs:
            raise PackageError(f"expected each --set once, got {name} twice")
        pairs[name] = value
    return pairs


def _released(environment: Mapping[str, str]) -> datetime:
    stated = environment.get(EPOCH_VARIABLE)
    if not stated:
        return _EPOCH
    try:
        return datetime.fromtimestamp(int(stated), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise PackageError(
            f"expected seconds since 1970 in {EPOCH_VARIABLE}, got {stated!r}"
        ) from error


def _extra(folder: Path) -> dict[str, bytes]:
    if not (folder / "Files").is_dir():
        raise PackageError(f"expected a folder with Files/ in it, as in the package, got {folder}")
    files = {}
    for path in sorted((folder / "Files").rglob("*")):
        inside = path.relative_to(folder).as_posix()
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise PackageError(
                f"expected files and folders in {folder}, got {inside}, which is a link, a device "
                "or a pipe"
            )
        if path.is_file():
            files[inside] = path.read_bytes()
    return files


def _write(files: Mapping[str, bytes], out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise PackageError(f"expected a folder to write to, got {out}, which is none")
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    for name, content in files.items():
        path = out / name
        if path.is_dir():
            raise PackageError(f"expected a file, or none, in the place of {path}, got a folder")
        replace_file(path, content)
        _say(console, f"written: {path}")


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
