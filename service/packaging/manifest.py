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
_ALGORITHM = "SHA-256"
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
        "ETSI-Entry-Manifest": MANIFEST_FILE,
    }
    return "".join(f"{key}: {value}\n" for key, value in stated.items()).encode("utf-8")


def meta_value(content: bytes, key: str) -> str | None:
    """What TOSCA.meta states for a key; None where it states nothing."""
    for line in content.decode("utf-8", "replace").splitlines():
        name, colon, value = line.partition(":")
        if colon and name.strip() == key:
            return value.strip() or None
    return None


def check_manifest(files: Mapping[str, bytes]) -> Iterator[Finding]:
    """What is wrong with the manifest of a package.

    The rApp manager does not read it; whoever verifies a package does.
    """
    if MANIFEST_FILE not in files:
        yield Finding(MANIFEST_FILE, "expected a manifest, got none")
        return
    lines = files[MANIFEST_FILE].decode("utf-8", "replace").splitlines()
    stated = [line.partition(":") for line in lines]
    keys = {name.strip() for name, _, value in stated if value.strip()}
    for key in _KEYS:
        if key not in keys:
            yield Finding(MANIFEST_FILE, f"expected {key}, got none")
    listed: set[str] = set()
    for name, _, value in stated:
        source = value.strip()
        if name.strip() == "Source":
            listed.add(source)
            if source not in files:
                yield Finding(MANIFEST_FILE, f"expected files of the package, got {source}")
    yield from _hashes(lines, files)
    for missing in sorted(set(files) - listed - {MANIFEST_FILE}):
        yield Finding(MANIFEST_FILE, f"expected every file as a Source, {missing} is not listed")


def _hashes(lines: list[str], files: Mapping[str, bytes]) -> Iterator[Finding]:
    source = ""
    for line in lines:
        name, _, value = (part.strip() for part in line.partition(":"))
        if name == "Source":
            source = value
        elif name == "Hash" and source in files:
            digest = hashlib.sha256(files[source]).hexdigest()
            if value.lower() != digest:
                yield Finding(
                    MANIFEST_FILE, f"expected the SHA-256 {digest} for {source}, got {value}"
                )
