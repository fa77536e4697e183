"""Quantiles: sorted, at the levels asked for, within the KPI's limits.

Sorting cannot make the pinball loss worse (Chernozhukov, Fernandez-Val and Galichon 2010), and a
monotone clamp commutes with quantiles, so both are exact repairs.

Axis legend: H steps, Q trained levels, L levels asked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kpi.catalogue import Kpi
from model.errors import LevelError


def check_levels(levels: Sequence[float], lowest: float, highest: float) -> None:
    """Refuse levels that the model cannot answer.

    Raises:
        LevelError: No level, levels that do not strictly ascend, or one outside lowest..highest.
    """
    if not levels:
        raise LevelError("expected at least one quantile level, got none")
    if any(not lowest <= level <= highest for level in levels):
        raise LevelError(
            f"expected quantile levels from {lowest:g} to {highest:g}, the trained range, "
            f"got {list(levels)}"
        )
    if any(a >= b for a, b in pairwise(levels)):
        raise LevelError(f"expected quantile levels in ascending order, got {list(levels)}")


def at_levels(quantiles: Tensor, trained: Sequence[float], levels: Sequence[float]) -> Tensor:
    """Sorted quantiles (..., Q) interpolated linearly at `levels`: (..., L)."""
    ordered = quantiles.sort(dim=-1).values
    grid = torch.tensor(trained, dtype=torch.float64)
    wanted = torch.tensor(levels, dtype=torch.float64)
    above = torch.searchsorted(grid, wanted).clamp(1, len(trained) - 1)  # (L,)
    weight = (wanted - grid[above - 1]) / (grid[above] - grid[above - 1])
    weight = weight.to(quantiles.dtype)
    return ordered[..., above - 1] * (1 - weight) + ordered[..., above] * weight


def within_limits(quantiles: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """Clamp (B, K, H, L) to the limits (B, K) of each KPI, which may be infinite."""
    return torch.minimum(torch.maximum(quantiles, lower[..., None, None]), upper[..., None, None])


def as_float32(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Values in the type of a forecast; what lies beyond its range becomes its largest value."""
    greatest = np.finfo(np.float32).max
    return np.clip(values, -greatest, greatest).astype(np.float32)


def uninformed(kpi: Kpi, levels: Sequence[float]) -> NDArray[np.float64]:
    """The widest honest answer for a KPI of which nothing was seen: (L,).

    Uniform between the limits where both are known, else NaN: nothing can be said.
    """
    if kpi.lower is None or kpi.upper is None:
        return np.full(len(levels), math.nan)
    return kpi.lower + (kpi.upper - kpi.lower) * np.asarray(levels, dtype=np.float64)
