"""One part of an image."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class Origin(Enum):
    """Where a part comes from, which decides what its licence is written in."""

    PYTHON = "Python packages"
    INTERPRETER = "Python itself"
    INSIDE = "Inside the packages"
    DEBIAN = "Debian packages of the base image"


@dataclass(frozen=True)
class Component:
    """One part of an image.

    Attributes:
        name: What its registry calls it.
        version: As its registry writes it; empty where the part does not say.
        origin: Where it comes from.
        licence: An SPDX expression; for Debian's packages the short names of their copyright file.
        purl: Package URL, its name for other tools; empty for what lies inside another part.
        texts: Files of the image that hold the licence's words.
        needs: Package URLs of the parts that it needs.
        inside: What it carries along, such as libraries that its wheel brings.
    """

    name: str
    version: str
    origin: Origin
    licence: str
    purl: str
    texts: tuple[Path, ...] = ()
    needs: tuple[str, ...] = ()
    inside: tuple[Component, ...] = ()


def flattened(components: Iterable[Component]) -> Iterator[tuple[Component, str]]:
    """Every part and what it carries along, each with the name of who carries it, or nothing."""
    for component in components:
        yield component, ""
        for part in component.inside:
            yield part, component.name
