"""One thing that is wrong with a package."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """What a RIC's tools would refuse, or what would not run once it is installed.

    Attributes:
        place: Where: a file of the package, or a path into a document.
        reason: What was expected, what is there, and what comes of it.
    """

    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}" if self.place else self.reason
