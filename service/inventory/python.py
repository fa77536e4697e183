"""The packages of Python that an image has, by the metadata that pip left (PEP 376, PEP 639)."""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePath
from platform import python_version
from urllib.parse import quote

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from service.inventory.bundled import parts_inside
from service.inventory.component import Component, Origin
from service.inventory.debian import STATUS
from service.inventory.licences import package_licence

OURS = "rancast"
_TEXT = re.compile(r"licen[cs]e|copying|notice", re.IGNORECASE)


def python_packages(path: Sequence[str] | None = None) -> list[Component]:
    """The packages that Python finds, by name.

    Args:
        path: Folders in which they are looked for; those of this Python, and of the one that this
            environment was made of, by default.

    Raises:
        LicenceError: A package or something inside it has no licence that can be understood.
        InventoryError: A package is damaged.
    """
    found = distributions(path=list(path)) if path is not None else _all_of_this_python()
    first: dict[str, Distribution] = {}
    for distribution in found:
        first.setdefault(_name(distribution), distribution)
    needs = _needs(first)
    return [_component(first[name], name, needs[name], first) for name in sorted(first)]


def interpreter(root: Path = Path("/")) -> list[Component]:
    """Python itself where it was built for the image; nothing where it is a package of Debian."""
    text = Path(sysconfig.get_path("stdlib")) / "LICENSE.txt"
    if Path(sys.base_prefix) == Path("/usr") and (root / STATUS).is_file():
        return []
    version = python_version()
    texts = (text,) if text.is_file() else ()
    purl = f"pkg:generic/python@{version}"
    return [Component("python", version, Origin.INTERPRETER, "PSF-2.0", purl, texts)]


def _all_of_this_python() -> Iterable[Distribution]:
    yield from distributions()
    base = {"base": sys.base_prefix, "platbase": sys.base_prefix}
    if sys.prefix != sys.base_prefix:
        yield from distributions(path=[sysconfig.get_path("purelib", "posix_prefix", base)])


def _name(distribution: Distribution) -> str:
    return str(canonicalize_name(distribution.metadata["Name"]))


def _component(
    distribution: Distribution, name: str, needs: Iterable[str], known: dict[str, Distribution]
) -> Component:
    texts = _texts(distribution)
    return Component(
        name=name,
        version=distribution.version,
        origin=Origin.PYTHON,
        licence=package_licence(distribution.metadata),
        purl=_purl(name, distribution.version),
        texts=texts,
        needs=tuple(_purl(other, known[other].version) for other in sorted(needs)),
        inside=tuple(parts_inside(distribution, name, texts)),
    )


def _purl(name: str, version: str) -> str:
    # The application itself is in no index.
    kind = "generic" if name == OURS else "pypi"
    return f"pkg:{kind}/{name}@{quote(version, safe='')}"


def _texts(distribution: Distribution) -> tuple[Path, ...]:
    """Files beside the metadata first, where PEP 639 puts them; else those anywhere inside."""
    files = [PurePath(file) for file in distribution.files or () if _TEXT.search(str(file))]
    beside = [file for file in files if ".dist-info" in file.parts[0]]
    named = [file for file in beside or files if file.suffix not in {".py", ".pyc"}]
    paths = [Path(str(distribution.locate_file(file))) for file in named]
    return tuple(sorted(path for path in paths if path.is_file()))


def _needs(known: dict[str, Distribution]) -> dict[str, set[str]]:
    """Names of the installed packages that each needs, with the extras that others ask of it."""
    extras: dict[str, set[str]] = {name: set() for name in known}
    needs: dict[str, set[str]] = {name: set() for name in known}
    waiting = set(known)
    while waiting:
        name = waiting.pop()
        for line in known[name].requires or ():
            wanted = Requirement(line)
            other = str(canonicalize_name(wanted.name))
            if other not in known or not _applies(wanted, extras[name]):
                continue
            needs[name].add(other)
            if not wanted.extras <= extras[other]:
                extras[other] |= wanted.extras
                waiting.add(other)
    return needs


def _applies(wanted: Requirement, extras: set[str]) -> bool:
    asked = ("", *sorted(extras))
    return wanted.marker is None or any(wanted.marker.evaluate({"extra": extra}) for extra in asked)
