"""How good forecasts were: WQL, MASE, WAPE and coverage.

Definitions follow the forecasting literature: the weighted quantile loss is GluonTS's
`mean_weighted_sum_quantile_loss` (about the continuous ranked probability score relative to the
size of the series), MASE is Hyndman and Koehler (2006) with a seasonal-naive scale. Targets that
are missing do not count.

Axis legend: N windows, H steps, Q levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Accuracy:
    """Sums that scores are made of, so that parts can be added up.

    Attributes:
        targets: Number of observed targets.
        absolute_target: Sum of |y|.
        pinball: (Q,) sum of twice the pinball loss at each level.
        absolute_error: Sum of |y - median|.
        scaled_error: Sum of |y - median| / seasonal-naive error of the series.
        scaled_targets: Targets that `scaled_error` counts (those of a series with such an error).
        inside: Targets between the lowest and highest level.
        width: Sum of the distance between these levels.
    """

    targets: int
    absolute_target: float
    pinball: NDArray[np.float64]
    absolute_error: float
    scaled_error: float
    scaled_targets: int
    inside: int
    width: float

    def __add__(self, other: Accuracy) -> Accuracy:
        return Accuracy(
            self.targets + other.targets,
            self.absolute_target + other.absolute_target,
            self.pinball + other.pinball,
            self.absolute_error + other.absolute_error,
            self.scaled_error + other.scaled_error,
            self.scaled_targets + other.scaled_targets,
            self.inside + other.inside,
            self.width + other.width,
        )

    @property
    def wql(self) -> float:
        """Weighted quantile loss, NaN where the targets sum to zero."""
        return _ratio(float(self.pinball.mean()), self.absolute_target)

    @property
    def wape(self) -> float:
        """Weighted absolute percentage error of the median, as a ratio."""
        return _ratio(self.absolute_error, self.absolute_target)

    @property
    def mase(self) -> float:
        """Mean absolute scaled error of the median."""
        return _ratio(self.scaled_error, self.scaled_targets)

    @property
    def coverage(self) -> float:
        """Share of targets between the lowest and the highest level."""
        return _ratio(self.inside, self.targets)

    @property
    def mean_width(self) -> float:
        """Mean distance between the lowest and the highest level, in the KPI's unit."""
        return _ratio(self.width, self.targets)

    @property
    def relative_width(self) -> float:
        """Sum of these distances relative to the sum of |y|: a width without a unit."""
        return _ratio(self.width, self.absolute_target)


def measure(
    quantiles: NDArray[np.floating],
    target: NDArray[np.floating],
    levels: Sequence[float],
    naive_error: NDArray[np.floating] | float = np.nan,
) -> Accuracy:
    """Score forecasts against what came.

    Args:
        quantiles: (N, H, Q), ascending over Q; NaN rows do not count.
        target: (N, H), NaN where missing.
        levels: The Q levels; the one nearest 0.5 is the median.
        naive_error: (N,) mean absolute seasonal-naive error of each window's series.
    """
    counted = ~np.isnan(target) & ~np.isnan(quantiles).any(-1)
    # In double precision, since differences and sums of large float32 leave their range.
    y = np.where(counted, target, 0.0).astype(np.float64)
    q = np.where(counted[..., None], quantiles, 0.0).astype(np.float64)
    level = np.asarray(levels)
    gap = y[..., None] - q
    pinball = 2 * np.maximum(level * gap, (level - 1) * gap).reshape(-1, len(level)).sum(0)
    median = q[..., int(np.argmin(np.abs(level - 0.5)))]
    error = np.abs(y - median)
    scale = np.broadcast_to(np.asarray(naive_error, dtype=np.float64), (len(target),))
    scalable = counted & (scale > 1e-12)[:, None]
    scaled = np.where(scalable, error / np.where(scale > 1e-12, scale, 1.0)[:, None], 0.0)
    inside = counted & (y >= q[..., 0]) & (y <= q[..., -1])
    return Accuracy(
        targets=int(counted.sum()),
        absolute_target=float(np.abs(y).sum()),
        pinball=pinball,
        absolute_error=float(error.sum()),
        scaled_error=float(scaled.sum()),
        scaled_targets=int(scalable.sum()),
        inside=int(inside.sum()),
        width=float((q[..., -1] - q[..., 0]).sum()),
    )


def seasonal_naive_error(series: NDArray[np.floating], season: int) -> float:
    """Mean |y[t] - y[t - season]| of a series (T,), NaN where there is no such pair."""
    if len(series) <= season:
        return float("nan")
    exact = series.astype(np.float64)
    difference = np.abs(exact[season:] - exact[:-season])
    seen = difference[~np.isnan(difference)]
    return float(seen.mean()) if len(seen) else float("nan")


def shown(value: float, spec: str) -> str:
    """A number for people: formatted, or a dash where it is none."""
    return "-" if np.isnan(value) else format(value, spec)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else float("nan")
