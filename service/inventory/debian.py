"""The packages of Debian that an image has, by dpkg's own records (deb822, Debian policy 5.3).

Licences are in files for people, most of them in the form of DEP 5, whose short names are taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from service.inventory.component import Component, Origin
from service.inventory.errors import LicenceError

STATUS = Path("var/lib/dpkg/status")
DOCUMENTS = Path("usr/share/doc")
IN_WORDS = "see its copyright file"
"""Licence of a package whose copyright file is not in a form that a program reads."""

_LICENCE = re.compile(r"^License:[ \t]*(\S.*?)\s*$", re.MULTILINE)
_FOREIGN = ("non-free", "contrib")


def debian_packages(root: Path = Path("/")) -> list[Component]:
    """The installed packages, by name; none where the image is not one of Debian's.

    Raises:
        LicenceError: A package is not of the main archive, so that it may not be free.
    """
    status = root / STATUS
    if not status.is_file():
        return []
    suite = _suite(root)
    return [
        _component(fields, root, suite)
        for fields in _paragraphs(status.read_text(encoding="utf-8"))
        if fields.get("Status", "").endswith(" installed")
    ]


def _component(fields: dict[str, str], root: Path, suite: str) -> Component:
    name, version = fields["Package"], fields["Version"]
    if fields.get("Section", "").startswith(_FOREIGN):
        raise LicenceError(
            f"{name} {version}: expected a package of Debian's main archive, got one of "
            f"{fields['Section']}; build on a base image without it"
        )
    text = root / DOCUMENTS / name / "copyright"
    known = text.is_file()
    where = f"arch={quote(fields['Architecture'])}{f'&distro={suite}' if suite else ''}"
    return Component(
        name=name,
        version=version,
        origin=Origin.DEBIAN,
        licence=_licence(text) if known else IN_WORDS,
        purl=f"pkg:deb/debian/{quote(name)}@{quote(version)}?{where}",
        texts=(text,) if known else (),
    )


def _licence(text: Path) -> str:
    words = text.read_text(encoding="utf-8", errors="replace")
    if not words.startswith("Format"):
        return IN_WORDS
    return ", ".join(dict.fromkeys(_LICENCE.findall(words))) or IN_WORDS


def _suite(root: Path) -> str:
    release = root / "etc/os-release"
    words = release.read_text(encoding="utf-8") if release.is_file() else ""
    found = re.search(r'^VERSION_ID="?([\w.]+)"?$', words, re.MULTILINE)
    return f"debian-{found[1]}" if found else ""


def _paragraphs(text: str) -> Iterator[dict[str, str]]:
    for paragraph in text.split("\n\n"):
        # What continues a field starts with a space, and is of no interest here.
        lines = [line for line in paragraph.splitlines() if line[:1].strip() and ":" in line]
        pairs = (line.split(":", 1) for line in lines)
        fields = {name: value.strip() for name, value in pairs}
        if "Package" in fields:
            yield fields
