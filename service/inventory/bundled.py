"""What the wheels of Python's packages carry inside: crates and libraries of other people.

Three witnesses, in this order: the bills of materials that a wheel brings (PEP 770), the shared
libraries that were copied into it, and for one that links them in without a word, its own licences'
file, as it was read here.
"""

from __future__ import annotations

import json
from importlib.metadata import Distribution
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any

from service.inventory.component import Component, Origin
from service.inventory.errors import InventoryError, LicenceError
from service.inventory.licences import expression

SHARED_LIBRARIES = MappingProxyType(
    {
        "libgfortran": "GPL-3.0-or-later WITH GCC-exception-3.1",
        "libgomp": "GPL-3.0-or-later WITH GCC-exception-3.1",
        "libquadmath": "LGPL-2.1-or-later",
        "libscipy_openblas64_": "BSD-3-Clause",
    }
)
"""Licences of the libraries that wheels carry as files, by the name before its hash."""

LINKED_IN = MappingProxyType(
    {
        # lxml's LICENSES.txt, section "Binary wheels".
        "lxml": (
            ("libiconv", "LGPL-2.1-or-later"),
            ("libxml2", "MIT"),
            ("libxslt", "MIT"),
            ("zlib", "Zlib"),
        ),
    }
)
"""Libraries and their licences that a package links into its own, by the package's name."""


def parts_inside(distribution: Distribution, name: str, texts: tuple[Path, ...]) -> list[Component]:
    """What a package carries along, by name, each once.

    Args:
        distribution: The package, as it is installed.
        name: Its name as the index writes it.
        texts: Its files with licences, which speak for its parts as well.

    Raises:
        LicenceError: A part whose licence cannot be told.
        InventoryError: A bill of materials that cannot be read.
    """
    files = [PurePath(file) for file in distribution.files or ()]
    located = [(file, Path(str(distribution.locate_file(file)))) for file in files]
    found = [
        part
        for file, path in located
        if file.parent.name == "sboms" and file.suffix == ".json" and path.is_file()
        for part in _stated(path, texts)
    ]
    found += [
        _part(library, "", _library_licence(library, name), texts)
        for file, path in located
        if (library := _foreign_library(file)) and path.is_file()
    ]
    found += [_part(part, "", licence, texts) for part, licence in LINKED_IN.get(name, ())]
    once = {(part.name, part.version): part for part in found}
    return [once[key] for key in sorted(once)]


def _part(
    name: str, version: str, licence: str, texts: tuple[Path, ...], purl: str = ""
) -> Component:
    return Component(name, version, Origin.INSIDE, licence, purl, texts)


def _foreign_library(file: PurePath) -> str:
    """Name of a library that was copied into a wheel, or nothing where the file is none."""
    if ".so" not in file.name:
        return ""
    name = file.name.partition(".")[0].partition("-")[0]
    copied = any(part.endswith(".libs") for part in file.parts[:-1])
    return name if copied or name in SHARED_LIBRARIES else ""


def _library_licence(library: str, carrier: str) -> str:
    try:
        return SHARED_LIBRARIES[library]
    except KeyError:
        raise LicenceError(
            f"{carrier} carries the library {library}, whose licence nobody has looked at; "
            "add it to service/inventory/bundled.py"
        ) from None


def _stated(path: Path, texts: tuple[Path, ...]) -> list[Component]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return [_of_document(part, path, texts) for part in document.get("components", ())]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InventoryError(f"expected a CycloneDX document in {path}, got: {error!r}") from error


def _of_document(part: dict[str, Any], path: Path, texts: tuple[Path, ...]) -> Component:
    name, version = part["name"], part.get("version", "")
    stated = [
        entry.get("expression")
        or entry["license"].get("id")
        or entry["license"].get("name")
        or entry["license"]["url"]
        for entry in part.get("licenses", ())
    ]
    understood = [expression(words) for words in stated]
    licences = [licence for licence in understood if licence is not None]
    if not licences or len(licences) != len(stated):
        library = name.partition("-")[0]
        if stated or library not in SHARED_LIBRARIES:
            raise LicenceError(
                f"{path}: expected an SPDX expression for {name} {version}, "
                f"got {stated or 'nothing'}"
            )
        licences = [SHARED_LIBRARIES[library]]
    licence = licences[0] if len(licences) == 1 else " AND ".join(f"({one})" for one in licences)
    return _part(name, version, licence, texts, part.get("purl", ""))
