"""A reference to a container image."""

from __future__ import annotations

import re
from dataclasses import dataclass

from service.packaging.errors import PackageError

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?")
_PARTS = re.compile(
    r"(?P<repository>[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)


@dataclass(frozen=True, slots=True)
class ImageReference:
    """Where a container runtime finds an image.

    Attributes:
        registry: Host and port; empty where the runtime's own default holds.
        repository: Path in the registry.
        tag: Tag; empty where a digest says more.
        digest: `sha256:` and the digest; empty where none is given.
    """

    registry: str
    repository: str
    tag: str
    digest: str


def image_reference(text: str) -> ImageReference:
    """The parts of `[REGISTRY/]REPOSITORY[:TAG][@DIGEST]`.

    Raises:
        PackageError: It has another form, or names neither tag nor digest.
    """
    first, slash, rest = text.partition("/")
    # Docker's own rule: what could be a host is one.
    has_registry = bool(slash) and ("." in first or ":" in first or first == "localhost")
    registry, path = (first, rest) if has_registry else ("", text)
    parts = _PARTS.fullmatch(path)
    hosted = not has_registry or _HOST.fullmatch(registry)
    if parts is None or not hosted or not (parts["tag"] or parts["digest"]):
        raise PackageError(
            "expected an image such as registry.example.org/ran/rancast:0.1.0, with a tag or a "
            f"digest, got {text!r}"
        )
    return ImageReference(registry, parts["repository"], parts["tag"] or "", parts["digest"] or "")
