"""What was refused just now would be refused again: worked out once, not for each request.

Where more is asked for than can be answered most requests are refused, and they look alike. While
the plan of a lane only grows, whoever comes later with the same budget is late by as much less as
it comes later; so one answer holds for all until that is used up, or a lane moves on.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

_MOST_AGE_S = 0.05
"""An idle lane measures itself again for those that it refuses, and has to hear of them."""
_MOST_KEPT = 256


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused.

    Attributes:
        expires_s: Its deadline, on the monotonic clock.
        late_s: By how much an answer would be late.
        own_s: What it takes where nothing else waits.
    """

    expires_s: float
    late_s: float
    own_s: float

    def after(self, expires_s: float) -> Refusal | None:
        """Of a request that is the same but for a later deadline; None where it may be in time."""
        later_s = expires_s - self.expires_s
        if not 0 <= later_s < min(self.late_s, _MOST_AGE_S):
            return None
        return Refusal(expires_s, self.late_s - later_s, self.own_s)


class Refusals:
    """The newest refusals of a lane by what was asked for, as long as it does not move on."""

    def __init__(self) -> None:
        self._moves = -1
        self._kept: dict[Hashable, Refusal] = {}

    def find(self, asked: Hashable | None, expires_s: float, moves: int) -> Refusal | None:
        """The refusal of a request like one before it, None where it has to be worked out.

        Args:
            asked: What it asks for, its budget included; None for what is like no other.
            expires_s: Its deadline.
            moves: How often the lane has moved on.
        """
        self._move_to(moves)
        kept = self._kept.get(asked)
        return None if kept is None else kept.after(expires_s)

    def keep(self, asked: Hashable | None, refusal: Refusal, moves: int) -> None:
        """A request was refused for what the lane has promised by now."""
        self._move_to(moves)
        if asked is not None and len(self._kept) < _MOST_KEPT:
            self._kept[asked] = refusal

    def _move_to(self, moves: int) -> None:
        if moves != self._moves:
            self._kept.clear()
            self._moves = moves
