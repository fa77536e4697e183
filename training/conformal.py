"""Shifts of quantiles from scores of past forecasts: split-conformal, wary of drift.

A score is how far a target lay from a quantile, in widths of its forecast (`model/calibration.py`).
Plain split-conformal prediction would shift every level by its own quantile of the scores. That
holds for the next hour, but the part of it that moves a whole forecast up or down (its bias) often
is that of a few days, and gone on the next ones. So each pair of levels t and 1 - t is calibrated
in two steps:

1. The interval between them is widened or narrowed by the score of rank ceil((n + 1) (1 - 2 t))
   among the greater of each target's two distances outside (Romano, Patterson and Candes 2019), so
   each central interval covers at least what it says where targets are exchangeable.
2. If then more targets lie outside on one side, both are moved by the mean of their plain shifts
   times a trust from 0 to 1, and step 1 is done anew. With d the mean over groups of past forecasts
   (cells, stretches of time) of how far their coverage is off, and e the standard error of that
   mean, the trust is max(0, 1 - (2 e / d)^2): what does not stand out by two standard errors is
   left alone (the positive-part estimator of James and Stein 1961, stricter).

Axis legend: N targets, Q quantile levels, G groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from model.calibration import MOST_SHIFT

FEWEST_A_GROUP = 10
"""A group with fewer targets says nothing of its coverage."""

STANDARD_ERRORS = 2.0
_HAIR = 1e-9
"""For products such as 10 * 0.1 and differences such as 1 - 0.9, which may lie beside a number."""


def conformal_shifts(
    scores: NDArray[np.floating], groups: NDArray[np.integer], levels: Sequence[float]
) -> NDArray[np.float64]:
    """The shift of each level, within plus and minus `MOST_SHIFT`.

    Args:
        scores: (N, Q), at least one row.
        groups: (N,) what forecasts have a chance to be off in common, for example a cell's week.
        levels: The Q levels, ascending.

    Returns:
        (Q,), in widths.
    """
    shifts = np.zeros(len(levels))
    for low, level in enumerate(levels):
        high = _partner(levels, level)
        if high is None:
            trusted = trust(_excess(scores[:, low], groups, level))
            shifts[low] = ranked(scores[:, low], level) * trusted
        elif low <= high:
            below, above = scores[:, low], scores[:, high]
            half = _half_width(below, above, 1 - 2 * level)
            off_low = _excess(below + half, groups, level)
            off_high = _excess(above - half, groups, 1 - level)
            moved = (ranked(below, level) + ranked(above, 1 - level)) / 2
            moved *= trust((off_low + off_high) / 2)
            half = _half_width(below - moved, above - moved, 1 - 2 * level)
            shifts[low], shifts[high] = moved - half, moved + half
    return np.clip(shifts, -MOST_SHIFT, MOST_SHIFT)


def _half_width(below: NDArray[np.floating], above: NDArray[np.floating], coverage: float) -> float:
    """By how much both ends of an interval go outwards; its middle, of coverage 0, stays.

    Args:
        below: (N,) scores at the lower end.
        above: (N,) scores at the upper end.
        coverage: Share of targets that the interval is to hold.
    """
    return ranked(np.maximum(-below, above), coverage) if coverage > _HAIR else 0.0


def ranked(scores: NDArray[np.floating], level: float) -> float:
    """The score of rank ceil((n + 1) level) among n, the greatest where the rank lies beyond it.

    Cut to `MOST_SHIFT`, since a difference of two such numbers has to be a number.
    """
    rank = min(max(math.ceil((len(scores) + 1) * level - _HAIR), 1), len(scores))
    return float(np.clip(np.partition(scores, rank - 1)[rank - 1], -MOST_SHIFT, MOST_SHIFT))


def trust(excess: NDArray[np.float64]) -> float:
    """How far groups agree that coverage is off: 0 within two standard errors, towards 1 beyond.

    Args:
        excess: (G,) coverage less level of each group; fewer than two tell nothing.
    """
    if len(excess) < 2:
        return 0.0
    mean = float(excess.mean())
    error = STANDARD_ERRORS * float(excess.std(ddof=1)) / math.sqrt(len(excess))
    return max(0.0, 1 - (error / mean) ** 2) if abs(mean) > error else 0.0


def _excess(
    scores: NDArray[np.floating], groups: NDArray[np.integer], level: float
) -> NDArray[np.float64]:
    """(G,) coverage of scores (N,) less level, in each group that has targets enough.

    Targets on a quantile count as far as the level needs them, so that zeros at a limit of zero are
    nothing that is off.
    """
    sizes = np.bincount(groups)
    kept = sizes >= FEWEST_A_GROUP
    fewest = np.bincount(groups, scores < 0)[kept] / sizes[kept]
    most = np.bincount(groups, scores <= 0)[kept] / sizes[kept]
    return np.asarray(np.clip(level, fewest, most) - level)


def _partner(levels: Sequence[float], level: float) -> int | None:
    """Position of 1 - level among the levels, None where it is not one of them."""
    found = [i for i, other in enumerate(levels) if abs(other - (1 - level)) < _HAIR]
    return found[0] if found else None
