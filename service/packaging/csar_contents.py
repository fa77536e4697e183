"""What is inside a CSAR, read without trusting it."""

from __future__ import annotations

import io
import lzma
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from service.packaging.document import read_json, read_yaml
from service.packaging.errors import PackageError
from service.packaging.finding import Finding

MOST_BYTES = 200 << 20
MOST_FILES = 10_000
# Bit 3 of an entry's flags: its sizes follow its content.
_SIZES_FOLLOW = 0x08
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# What the library lets through of a damaged file, beside its own error.
_DAMAGES = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    OSError,
    EOFError,
    RuntimeError,
    ValueError,
    LookupError,
    OverflowError,
)


@dataclass(frozen=True, slots=True)
class CsarContents:
    """Files of a package, and what is wrong with how they are packed.

    Attributes:
        files: Content by path.
        findings: What the manager's own reader would stumble over.
    """

    files: Mapping[str, bytes]
    findings: tuple[Finding, ...]

    def below(self, folder: str) -> list[str]:
        """Paths of the files in a folder, which ends in a slash."""
        return sorted(name for name in self.files if name.startswith(folder))


def open_csar(content: bytes) -> CsarContents:
    """Unpack a CSAR.

    Raises:
        PackageError: It is no zip file, or a very large one.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            size = sum(entry.file_size for entry in entries)
            if len(entries) > MOST_FILES or size > MOST_BYTES:
                raise PackageError(
                    f"expected at most {MOST_FILES} files of {MOST_BYTES} bytes together, got "
                    f"{len(entries)} of {size}"
                )
            files = {entry.filename: archive.read(entry) for entry in entries if not entry.is_dir()}
    except _DAMAGES as error:
        raise PackageError(f"expected a zip file, got: {error}") from error
    return CsarContents(files, tuple(_findings(entries)))


def json_document(contents: CsarContents, name: str) -> Any:
    """What a JSON file holds.

    Raises:
        PackageError: It is no JSON.
    """
    return read_json(contents.files[name])


def yaml_document(contents: CsarContents, name: str) -> Any:
    """What a YAML file holds.

    Raises:
        PackageError: It is no YAML.
    """
    return read_yaml(contents.files[name])


def at(document: Any, *keys: str) -> Any:
    """What lies below some keys; None where something else is on the way."""
    for key in keys:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def _findings(entries: list[zipfile.ZipInfo]) -> Iterator[Finding]:
    names = [entry.filename for entry in entries]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield Finding(name, "expected each file once, got it twice")
    for entry in entries:
        path = PurePosixPath(entry.filename)
        plain = str(path) == entry.filename.rstrip("/")
        if not plain or path.is_absolute() or ".." in path.parts or "\\" in entry.filename:
            yield Finding(
                entry.filename,
                "expected a plain path with slashes, without ./ or ../ in it: the manager compares "
                "whole names",
            )
        if stat.S_ISLNK(entry.external_attr >> 16):
            yield Finding(
                entry.filename,
                "expected a file, got a link: the manager would take its target's name for content",
            )
        if entry.compress_type not in _METHODS:
            yield Finding(
                entry.filename,
                f"expected a file that is stored or deflated, got method {entry.compress_type}: "
                "the manager reads no other",
            )
        if entry.compress_type == zipfile.ZIP_STORED and entry.flag_bits & _SIZES_FOLLOW:
            yield Finding(
                entry.filename,
                "expected its size in front of an uncompressed file, got it behind: the manager "
                "reads packages as a stream; write the zip to a file, not to a pipe",
            )
