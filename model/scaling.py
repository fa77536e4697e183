"""From KPI values to the space in which the model works, and back.

Every series is centred and divided by the spread of its own observed context, with floors so that a
constant series does not explode, then compressed by asinh so that bursts do not dominate. The
statistics are returned, never kept: two requests in flight cannot disturb each other.

Axis legend: B windows, K KPIs, T samples, C context samples.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

RELATIVE_FLOOR = 0.01
ABSOLUTE_FLOOR = 1e-6
INVERSE_LIMIT = 8.0
"""asinh values are cut to +-8 (1,490 spreads) before sinh, so that no output overflows."""


class ScaleStats(NamedTuple):
    """Location and spread of each series, float64 (B, K, 1)."""

    mean: Tensor
    spread: Tensor


def measure(context: Tensor) -> ScaleStats:
    """Mean and standard deviation of the observed samples, with floors.

    Args:
        context: (B, K, C), NaN where missing. A series without samples gets mean 0 and spread 1.
    """
    observed = ~torch.isnan(context)
    values = torch.where(observed, context, 0).double()
    count = observed.sum(-1, keepdim=True)
    mean = values.sum(-1, keepdim=True) / count.clamp(min=1)
    deviation = torch.where(observed, values - mean, 0)
    std = (deviation.square().sum(-1, keepdim=True) / count.clamp(min=1)).sqrt()
    spread = torch.maximum(std, RELATIVE_FLOOR * mean.abs()).clamp(min=ABSOLUTE_FLOOR)
    return ScaleStats(mean, torch.where(count > 0, spread, 1.0))


def scale(values: Tensor, stats: ScaleStats) -> Tensor:
    """Values (B, K, T) in model space, float32; NaN stays NaN."""
    return torch.asinh((values.double() - stats.mean) / stats.spread).float()


def unscale(scaled: Tensor, stats: ScaleStats) -> Tensor:
    """Inverse of `scale` for (B, K, ...) of any further axes, float64."""
    extra = scaled.dim() - stats.mean.dim()
    mean = stats.mean.reshape(*stats.mean.shape, *[1] * extra)
    spread = stats.spread.reshape(*stats.spread.shape, *[1] * extra)
    return mean + spread * torch.sinh(scaled.double().clamp(-INVERSE_LIMIT, INVERSE_LIMIT))
