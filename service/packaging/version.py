"""Versions that change with the content that they name.

A chart repository takes a version once: a second upload of it is refused, or, worse, counts as done
while the old chart stays (the rApp manager takes the 409 for success). So a package's version ends
in a digest of what is inside. It stands behind a hyphen, as a pre-release (semver 2.0, clause 9),
and not behind a plus sign: tools leave build metadata out when they compare versions, so that two
charts that differ there are one to them; URLs read a plus sign as a blank; and a tag of an OCI
registry cannot hold it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from service.packaging.errors import PackageError

# semver.org's own expression, with build metadata apart.
_IDENTIFIER = r"(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
SEMVER = re.compile(
    r"(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)"
    rf"(?:-(?P<prerelease>{_IDENTIFIER}(?:\.{_IDENTIFIER})*))?"
    r"(?P<build>\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?"
)
# A letter in front: a number with a zero in front of it is no identifier of a pre-release.
_MARK = "c"
_DIGEST_LETTERS = 12


def content_version(base: str, files: Mapping[str, bytes]) -> str:
    """A version of some files, such as `0.1.0-c1f2e3d4c5b6a`.

    Args:
        base: The version that people give them; a pre-release goes on behind it.
        files: Content by name.

    Raises:
        PackageError: `base` is no semantic version, or has build metadata.
    """
    parts = SEMVER.fullmatch(base)
    if parts is None or parts["build"]:
        raise PackageError(
            f"expected a semantic version without build metadata, such as 0.1.0, got {base!r}"
        )
    joint = "." if parts["prerelease"] else "-"
    return f"{base}{joint}{_MARK}{content_digest(files)[:_DIGEST_LETTERS]}"


def content_digest(files: Mapping[str, bytes]) -> str:
    """SHA-256 of names and contents, in hex, whatever their order."""
    digest = hashlib.sha256()
    for name in sorted(files):
        for part in (name.encode(), files[name]):
            # Lengths keep the bytes of one part out of the next.
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()
