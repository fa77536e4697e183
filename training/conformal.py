"""Shifts of quantiles from scores of past forecasts: split-conformal, wary of drift.

A score is how far a target lay from a quantile, in widths of its forecast (`model/calibration.py`).
Plain split-conformal prediction would shift every level by its own quantile of the scores. That
holds for the next hour, but the part of it that moves a whole forecast up or down (its bias) often
is that of a few days, and gone on the next ones. So each pair of levels t and 1 - t is calibrated
in two steps:

1. Both are moved by the mean of their plain shifts times a trust from 0 to 1. With d the mean over
   groups of past forecasts (cells, stretches of time) of how far their coverage is off, and e the
   standard error of that mean, the trust is max(0, 1 - (2 e / d)^2): what does not stand out by two
   standard errors is left alone (the positive-part estimator of James and Stein 1961, stricter).
2. The interval between them is widened or narrowed by the score of rank ceil((n + 1) (1 - 2 t))
   among the greater of each target's two distances outside (Romano, Patterson and Candes 2019), so
   each central interval covers at least what it says where targets are exchangeable.

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
    plain = np.array([ranked(scores[:, i], level) for i, level in enumerate(levels)])
    excess = _excess(scores, groups, levels)  # (G, Q)
    shifts = np.zeros(len(levels))
    for low, level in enumerate(levels):
        high = _partner(levels, level)
        if high is None:
            shifts[low] = plain[low] * trust(excess[:, low])
        elif low <= high:
            moved = (plain[low] + plain[high]) / 2
            moved *= trust((excess[:, low] + excess[:, high]) / 2)
            outside = np.maximum(moved - scores[:, low], scores[:, high] - moved)
            half = ranked(outside, 1 - 2 * level) if low < high else 0.0
            shifts[low], shifts[high] = moved - half, moved + half
    return np.clip(shifts, -MOST_SHIFT, MOST_SHIFT)


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
    scores: NDArray[np.floating], groups: NDArray[np.integer], levels: Sequence[float]
) -> NDArray[np.float64]:
    """(G, Q) coverage less level of each group that has targets enough.

    Targets on a quantile count as far as the level needs them, so that zeros at a limit of zero are
    nothing that is off.
    """
    wanted = np.asarray(levels)
    rows = []
    for group in np.unique(groups):
        own = scores[groups == group]
        if len(own) >= FEWEST_A_GROUP:
            covered = np.clip(wanted, (own < 0).mean(axis=0), (own <= 0).mean(axis=0))
            rows.append(covered - wanted)
    return np.array(rows).reshape(-1, len(wanted))


def _partner(levels: Sequence[float], level: float) -> int | None:
    """Position of 1 - level among the levels, None where it is not one of them."""
    found = [i for i, other in enumerate(levels) if abs(other - (1 - level)) < _HAIR]
    return found[0] if found else None
