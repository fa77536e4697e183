"""From KPI values to the space in which the model works, and back.

Every series is centred and divided by the spread of its own observed context, with a floor so that
a constant series does not explode, then compressed by asinh so that bursts do not dominate. A
series of nothing but zeros has no size of its own: its spread is zero, and whatever the model says
of it comes back as zero. The statistics are returned, never kept: two requests in flight cannot
disturb each other.

Axis legend: B windows, K KPIs, T samples, C context samples.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

RELATIVE_FLOOR = 0.01
INVERSE_LIMIT = 8.0
"""asinh values are cut to +-8 (1,490 spreads) before sinh, so that no output overflows."""


class ScaleStats(NamedTuple):
    """Location and spread of each series, float64 (B, K, 1); the spread of all zeros is zero."""

    mean: Tensor
    spread: Tensor

    @property
    def divisor(self) -> Tensor:
        """The spread, with 1 in the place of zero."""
        return torch.where(self.spread > 0, self.spread, 1.0)


def measure(context: Tensor) -> ScaleStats:
    """Mean and standard deviation of the observed samples, the latter at least 1 % of the mean.

    Args:
        context: (B, K, C), NaN where missing. A series without samples gets mean 0 and spread 1.
    """
    observed = ~torch.isnan(context)
    values = torch.where(observed, context, 0).double()
    count = observed.sum(-1, keepdim=True)
    mean = values.sum(-1, keepdim=True) / count.clamp(min=1)
    deviation = torch.where(observed, values - mean, 0)
    std = (deviation.square().sum(-1, keepdim=True) / count.clamp(min=1)).sqrt()
    spread = torch.maximum(std, RELATIVE_FLOOR * mean.abs())
    return ScaleStats(mean, torch.where(count > 0, spread, 1.0))


def scale(values: Tensor, stats: ScaleStats) -> Tensor:
    """Values (B, K, T) in model space, float32; NaN stays NaN."""
    return torch.asinh((values.double() - stats.mean) / stats.divisor).float()


def unscale(scaled: Tensor, stats: ScaleStats) -> Tensor:
    """Inverse of `scale` for (B, K, ...) of any further axes, float64."""
    extra = scaled.dim() - stats.mean.dim()
    mean = stats.mean.reshape(*stats.mean.shape, *[1] * extra)
    spread = stats.spread.reshape(*stats.spread.shape, *[1] * extra)
    return mean + spread * torch.sinh(scaled.double().clamp(-INVERSE_LIMIT, INVERSE_LIMIT))
