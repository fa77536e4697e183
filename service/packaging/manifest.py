"""The manifest of a CSAR: who made it, and what is inside (ETSI GS NFV-SOL 004, clause 4.3.2)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from service.packaging.finding import Finding

META_FILE = "TOSCA-Metadata/TOSCA.meta"
MANIFEST_FILE = "asd.mf"
ENTRY_KEY = "Entry-Definitions"
_MANIFEST_KEY = "ETSI-Entry-Manifest"
_ALGORITHM = "SHA-256"
# Those of SOL 004, table 4.3.2-1, by the names that the library has for them.
_HASHES = {"SHA-224": "sha224", "SHA-256": "sha256", "SHA-384": "sha384", "SHA-512": "sha512"}
_KEYS = ("application_name", "application_provider", "release_date_time", "entry_definition_type")


@dataclass(frozen=True, slots=True)
class Manifest:
    """Head of a manifest.

    Attributes:
        name: Name of the application.
        provider: Who provides it.
        released: When, with an offset.
    """

    name: str
    provider: str
    released: datetime

    def text(self, files: Mapping[str, bytes]) -> bytes:
        """The file `asd.mf` of a package with these files beside it."""
        head = dict(
            zip(
                _KEYS,
                (self.name, self.provider, self.released.isoformat(timespec="seconds"), "asd"),
                strict=True,
            )
        )
        lines = ["metadata:", *(f"  {key}: {value}" for key, value in head.items())]
        for name in sorted(files):
            digest = hashlib.sha256(files[name]).hexdigest()
            lines += ["", f"Source: {name}", f"Algorithm: {_ALGORITHM}", f"Hash: {digest}"]
        return ("\n".join(lines) + "\n").encode("utf-8")


def meta(created_by: str, entry: str) -> bytes:
    """The file `TOSCA-Metadata/TOSCA.meta`."""
    stated = {
        "TOSCA-Meta-File-Version": "1.0",
        "CSAR-Version": "1.0",
        "Created-By": created_by,
        ENTRY_KEY: entry,
        _MANIFEST_KEY: MANIFEST_FILE,
    }
    return "".join(f"{key}: {value}\n" for key, value in stated.items()).encode("utf-8")


def entry_definitions(content: bytes) -> str | None:
    """The descriptor that TOSCA.meta names, as the rApp manager finds it; None where it finds none.

    It takes the first line, up to a line feed, that has the key somewhere, and what is left of the
    line once the key with its colon is out: a byte order mark in front stays part of the path.
    """
    for line in content.decode("utf-8", "replace").split("\n"):
        if ENTRY_KEY in line:
            # Java's String.trim.
            return line.replace(f"{ENTRY_KEY}:", "").strip("".join(map(chr, range(33)))) or None
    return None


def check_manifest(files: Mapping[str, bytes]) -> Iterator[Finding]:
    """What is wrong with the manifest of a package.

    The rApp manager does not read it; whoever verifies a package does.
    """
    stated = dict(_lines(files.get(META_FILE, b"")))
    place = stated.get(_MANIFEST_KEY) or MANIFEST_FILE
    if place not in files:
        yield Finding(place, "expected a manifest, got none")
        return
    lines = _lines(files[place])
    keys = {name for name, value in lines if value}
    for key in _KEYS:
        if key not in keys:
            yield Finding(place, f"expected {key}, got none")
    listed = [value for name, value in lines if name == "Source"]
    for source in listed:
        if source not in files:
            yield Finding(place, f"expected files of the package, got {source}")
    for reason in _hashes(lines, files):
        yield Finding(place, reason)
    for missing in sorted(set(files) - set(listed) - {place}):
        yield Finding(place, f"expected every file as a Source, {missing} is not listed")


def _lines(content: bytes) -> list[tuple[str, str]]:
    """Names and values, whatever the ends of the lines."""
    text = content.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
    parts = [line.partition(":") for line in text.split("\n")]
    return [(name.strip(), value.strip()) for name, _, value in parts]


def _hashes(lines: list[tuple[str, str]], files: Mapping[str, bytes]) -> Iterator[str]:
    source, algorithm = "", _ALGORITHM
    for name, value in lines:
        if name == "Source":
            source, algorithm = value, _ALGORITHM
        elif name == "Algorithm":
            algorithm = value
            if algorithm not in _HASHES:
                yield f"expected one of {', '.join(_HASHES)} for {source}, got {algorithm}"
        elif name == "Hash" and source in files and algorithm in _HASHES:
            digest = hashlib.new(_HASHES[algorithm], files[source]).hexdigest()
            if value.lower() != digest:
                yield f"expected the {algorithm} {digest} for {source}, got {value}"
