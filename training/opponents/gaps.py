"""Gaps filled for methods that cannot bear them, from inside the window only.

Axis legend: N windows, C samples of context.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def filled(context: NDArray[np.floating]) -> NDArray[np.float64]:
    """Rows with gaps interpolated linearly and the last value held to the end.

    What lies before the first value of a row stays NaN: nothing is known of it.

    Args:
        context: (N, C), NaN where missing.

    Returns:
        float64 (N, C).
    """
    values = np.asarray(context, dtype=np.float64)
    steps = values.shape[1]
    seen = ~np.isnan(values)
    position = np.arange(steps)
    before = np.maximum.accumulate(np.where(seen, position, -1), axis=1)  # (N, C)
    after = np.minimum.accumulate(np.where(seen, position, steps)[:, ::-1], axis=1)[:, ::-1]
    left = np.take_along_axis(values, np.maximum(before, 0), axis=1)
    right = np.take_along_axis(values, np.minimum(after, steps - 1), axis=1)
    inside = (before >= 0) & (after < steps)
    share = np.where(inside, (position - before) / np.maximum(after - before, 1), 0.0)
    line = left * (1 - share) + np.where(inside, right, 0.0) * share
    return np.where(before >= 0, line, np.nan)
