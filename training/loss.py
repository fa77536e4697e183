"""The pinball loss in the model's own space.

Minimising it over many samples makes each output the quantile of its level (Koenker and Bassett
1978).

Axis legend: B windows, K KPIs, H steps, Q levels.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def pinball(quantiles: Tensor, target: Tensor, levels: Sequence[float]) -> Tensor:
    """Mean of twice the pinball loss over the observed targets and all levels, a scalar.

    Args:
        quantiles: (B, K, H, Q), unsorted.
        target: (B, K, H), NaN where nothing was observed; those do not count. A batch without any
            observed target costs zero.
        levels: The Q levels.
    """
    observed = ~torch.isnan(target)
    gap = torch.where(observed, target, 0)[..., None] - quantiles  # (B, K, H, Q)
    level = torch.tensor(levels, dtype=quantiles.dtype)
    cost = torch.maximum(level * gap, (level - 1) * gap).mean(-1)  # (B, K, H)
    return 2 * (cost * observed).sum() / observed.sum().clamp(min=1)
