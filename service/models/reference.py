"""How an operator or a client names a model: `NAME`, or `NAME@VERSION`."""

from __future__ import annotations

import re
from dataclasses import dataclass

_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class ModelReference:
    """A model that may be served.

    Attributes:
        name: Its name.
        version: Its version; None for whichever is in force under that name.
    """

    name: str
    version: str | None = None

    def names(self, key: tuple[str, str]) -> bool:
        """Whether it means the model of this name and version, among others perhaps."""
        name, version = key
        return name == self.name and self.version in (None, version)

    def __str__(self) -> str:
        return self.name if self.version is None else f"{self.name}@{self.version}"


def parse_reference(text: str) -> ModelReference:
    """Read `NAME` or `NAME@VERSION`.

    Raises:
        ValueError: One of the two is empty.
    """
    name, at, version = text.strip().partition("@")
    if not name or (at and not version):
        raise ValueError(f"expected NAME or NAME@VERSION, got {text!r}")
    return ModelReference(name, version or None)


def version_order(version: str) -> tuple[tuple[int, int, str], ...]:
    """Sorts versions: numbers in them as numbers, so that 1.10 comes after 1.9.

    What follows a dash or is no number, as in 1.0.0-rc1, comes before what has nothing there, as
    Semantic Versioning 2.0.0, clause 11, has it.
    """
    core, dash, rest = version.partition("-")
    parts = [*_parts(core)]
    return (*parts, (1, 0, "")) if not dash else (*parts, (0, 0, ""), *_parts(rest))


def _parts(text: str) -> list[tuple[int, int, str]]:
    found = (part for part in _DIGITS.split(text) if part not in ("", "."))
    return [(2, int(part), "") if part.isdigit() else (1, 0, part) for part in found]
