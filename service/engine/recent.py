"""Numbers of the recent past, in order of time and of size."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque


class Recent:
    """The newest numbers: not more than so many, and none that is older than so long.

    Args:
        most: Numbers that are kept.
        most_s: Age up to which they are.
        least: So many are kept whatever their age.
    """

    def __init__(self, most: int, most_s: float, least: int = 1) -> None:
        self._most = most
        self._most_s = most_s
        self._least = least
        self._by_time: deque[tuple[float, float]] = deque()
        self._by_size: list[float] = []

    def __len__(self) -> int:
        return len(self._by_time)

    def append(self, number: float, now_s: float) -> None:
        """One more number; those that are too old or too many are forgotten."""
        while len(self._by_time) >= self._most or (
            len(self._by_time) >= self._least and self._by_time[0][0] < now_s - self._most_s
        ):
            _, oldest = self._by_time.popleft()
            del self._by_size[bisect_left(self._by_size, oldest)]
        self._by_time.append((now_s, number))
        insort(self._by_size, number)

    def quantile(self, level: float) -> float:
        """What so large a share of them does not exceed, between the two next to it; 0 for none."""
        if not self._by_size:
            return 0.0
        place = level * (len(self._by_size) - 1)
        below = int(place)
        above = min(below + 1, len(self._by_size) - 1)
        low, high = self._by_size[below], self._by_size[above]
        return low + (place - below) * (high - low)
