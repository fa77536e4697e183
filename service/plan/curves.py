"""How long calls take by their size, and what that says of sizes that were not measured."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

HIGH_LEVEL = 0.99
_MS_PER_S = 1_000


class Statistic(StrEnum):
    """Which of a point's figures is meant."""

    P50 = "p50_ms"
    P99 = "p99_ms"
    MEAN = "mean_ms"


@dataclass(frozen=True, slots=True)
class Point:
    """Durations of calls of one size, in milliseconds.

    Attributes:
        cells: Windows in the call, one a cell.
        p50_ms: Half of them took no longer.
        p99_ms: 99 in 100 took no longer; of fewer than 100 calls the longest.
        mean_ms: Their mean, which decides how many can be made in a second.
        calls: How many were measured.
    """

    cells: int
    p50_ms: float
    p99_ms: float
    mean_ms: float
    calls: int

    @staticmethod
    def of(cells: int, durations_s: Sequence[float]) -> Point:
        """The figures of at least one duration.

        Quantiles are the nearest rank (the smallest duration that the share does not exceed), so
        that none is made up between two that were measured.
        """
        ordered = sorted(durations_s)
        return Point(
            cells=cells,
            p50_ms=_MS_PER_S * _ranked(ordered, 0.5),
            p99_ms=_MS_PER_S * _ranked(ordered, HIGH_LEVEL),
            mean_ms=_MS_PER_S * math.fsum(ordered) / len(ordered),
            calls=len(ordered),
        )


def _ranked(ordered: Sequence[float], level: float) -> float:
    return ordered[max(0, math.ceil(level * len(ordered)) - 1)]


@dataclass(frozen=True, slots=True)
class Curve:
    """Durations by size, from one cell to the largest call that is made.

    Between two sizes it is a straight line. More cells never take less time: where a smaller size
    measured longer, in a noisy moment, that holds for the larger one too. More cells than the
    largest size has go through in several calls, one after the other.

    Attributes:
        points: In ascending order of `cells`, the first of one cell.

    Raises:
        ValueError: There are none, they do not ascend, or the first is not of one cell.
    """

    points: tuple[Point, ...]

    def __post_init__(self) -> None:
        sizes = [point.cells for point in self.points]
        if sizes[:1] != [1] or any(later <= one for one, later in itertools.pairwise(sizes)):
            raise ValueError(f"expected sizes that ascend from 1 cell, got {sizes}")

    @property
    def largest_call(self) -> int:
        """Cells in the largest call."""
        return self.points[-1].cells

    def duration_ms(self, cells: int, statistic: Statistic) -> float:
        """How long it takes to serve so many cells; 0 for none.

        Figures of several calls are added up: for a high quantile that is more than is to be
        expected, since not all of them are slow at once.
        """
        calls, rest = divmod(cells, self.largest_call)
        return calls * self._call_ms(self.largest_call, statistic) + self._call_ms(rest, statistic)

    def _call_ms(self, cells: int, statistic: Statistic) -> float:
        """A call of no more than the largest size."""
        if cells == 0:
            return 0.0
        sizes = [point.cells for point in self.points]
        values = list(
            itertools.accumulate(
                (float(getattr(point, statistic.value)) for point in self.points), max
            )
        )
        right = bisect.bisect_left(sizes, cells)
        if sizes[right] == cells:
            return values[right]
        share = (cells - sizes[right - 1]) / (sizes[right] - sizes[right - 1])
        return (1 - share) * values[right - 1] + share * values[right]
