"""What can go wrong with opponents."""

from __future__ import annotations

from collections.abc import Iterable

from training.errors import TrainingError

EXTRA = "opponents"


class UnknownOpponentError(TrainingError):
    """A name that no opponent has."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"expected an opponent from {', '.join(known)}; got {name!r}")


class MissingExtraError(TrainingError):
    """An opponent's library is not installed; the message says which extra brings it."""

    def __init__(self, opponent: str, library: str) -> None:
        super().__init__(
            f"the opponent {opponent!r} needs {library}, which the extra {EXTRA!r} brings and "
            f"which is not installed; in the checkout: "
            f"pip install -c constraints.txt -e '.[{EXTRA}]'"
        )
