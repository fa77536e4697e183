"""Which licences may be shipped: permissive ones, and others part by part, each with a reason."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from service.inventory.component import Component, Origin, flattened
from service.inventory.errors import LicenceError
from service.inventory.licences import satisfied

PERMISSIVE = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSL-1.0",
        "CC0-1.0",
        "ISC",
        "MIT",
        "MIT-0",
        "PSF-2.0",
        "Unicode-DFS-2016",
        "Unicode-3.0",
        "Unlicense",
        "Zlib",
    }
)
"""Licences that ask for their text and the names of the authors to be passed on, or for less."""

_FILE_BY_FILE = (
    "Binds its own files only, which are shipped as their authors publish them; the source is at "
    "the package's address on the index."
)
_COMPILER_RUNTIME = (
    "The runtime of a compiler: its exception lets programs that were compiled with it be "
    "distributed under terms of their own."
)
REVIEWED = MappingProxyType(
    {
        ("certifi", "MPL-2.0"): _FILE_BY_FILE,
        ("orjson", "MPL-2.0"): _FILE_BY_FILE,
        ("libgfortran", "GPL-3.0-or-later WITH GCC-exception-3.1"): _COMPILER_RUNTIME,
        ("libgomp", "GPL-3.0-or-later WITH GCC-exception-3.1"): _COMPILER_RUNTIME,
        ("libquadmath", "LGPL-2.1-or-later"): (
            "A shared library of its own, unmodified, that whoever likes can replace; its source "
            "is that of GCC."
        ),
        ("libiconv", "LGPL-2.1-or-later"): (
            "Linked into lxml, whose sources and build script are public: whoever likes can build "
            "it with another libiconv and install that in its place."
        ),
    }
)
"""Why a part may be shipped whose licence is not permissive, by its name and licence."""

DEBIAN_REASON = (
    "Packages of Debian's main archive, unmodified and separate programs or libraries beside the "
    "service. Some are under the GPL or LGPL, which allows that; the corresponding source is in "
    "Debian's archive under the same name and version."
)


def refuse_unreviewed(components: Iterable[Component]) -> None:
    """Raise where a part may not be shipped, or nobody has looked whether it may.

    Raises:
        LicenceError: Names all such parts.
    """
    faults = [
        f"{part.name} {part.version}{f' (in {carrier})' if carrier else ''}: {fault}"
        for part, carrier in flattened(components)
        if (fault := _fault(part)) is not None
    ]
    if faults:
        raise LicenceError(
            "not to be shipped before somebody has looked at it and added a reason to "
            "service/inventory/policy.py:\n  " + "\n  ".join(faults)
        )


def reason(component: Component) -> str | None:
    """Why a part may be shipped although its licence is not permissive; None where it is."""
    if component.origin is Origin.DEBIAN:
        return DEBIAN_REASON
    if satisfied(component.licence, PERMISSIVE.__contains__):
        return None
    found = (REVIEWED.get((component.name, licence)) for licence in _reviewed_of(component))
    return " ".join(words for words in found if words)


def _reviewed_of(component: Component) -> list[str]:
    return [licence for name, licence in REVIEWED if name == component.name]


def _fault(component: Component) -> str | None:
    if not component.texts:
        return "no file with the text of its licence"
    if component.origin is Origin.DEBIAN:
        return None
    accepted = PERMISSIVE.union(_reviewed_of(component))
    if satisfied(component.licence, accepted.__contains__):
        return None
    return f"licence {component.licence}"
