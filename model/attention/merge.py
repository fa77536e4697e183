"""Joining the answers over two disjoint sets of keys into the answer over both.

Axis legend: B batch, H heads, N_q queries, D head width.
"""

from __future__ import annotations

import torch
from torch import Tensor


def merge(
    output_a: Tensor, lse_a: Tensor, output_b: Tensor, lse_b: Tensor
) -> tuple[Tensor, Tensor]:
    """Weigh each half by its share of the exponential sum; the result is exact.

    Long memories can so be read in parts, in parallel or as they come, in any order.

    Args:
        output_a: (B, H, N_q, D), attention over the first set of keys.
        lse_a: (B, H, N_q), its log-sum-exp; -inf where a query saw none of them.
        output_b: (B, H, N_q, D), the same over the second set.
        lse_b: (B, H, N_q).

    Returns:
        Output (B, H, N_q, D) in the type of `output_a` and log-sum-exp (B, H, N_q) over both sets;
        0 and -inf where neither set showed anything.
    """
    largest = torch.maximum(lse_a, lse_b).detach()
    nothing = largest == -torch.inf
    pivot = torch.where(nothing, 0.0, largest)
    weight_a, weight_b = (lse_a - pivot).exp(), (lse_b - pivot).exp()  # (B, H, N_q)
    total = torch.where(nothing, 1.0, weight_a + weight_b)
    share_a, share_b = (weight_a / total).unsqueeze(-1), (weight_b / total).unsqueeze(-1)
    output = share_a * output_a + share_b * output_b
    lse = torch.where(nothing, -torch.inf, pivot + total.log())
    return output.to(output_a.dtype), lse
