"""The definition, softmax(Q Kᵀ · scale) V with a mask, dense and in the type of its inputs.

It is the specification of the package and the oracle of its tests, so it is written to be read.
It keeps (B, H, N_q, N_k) arrays.
"""

from __future__ import annotations

import torch
from torch import Tensor

from model.attention.inputs import accumulator_dtype
from model.attention.mask import Mask, sequence_positions


def reference_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Mask, scale: float
) -> tuple[Tensor, Tensor]:
    """Weights are the softmax of the visible scores; a row that sees nothing has none.

    Args:
        q: (B, H, N_q, D).
        k: (B, H, N_k, D), finite where no query sees it.
        v: (B, H, N_k, D), likewise.
        mask: Who sees whom.
        scale: Factor of the scores.

    Returns:
        Output (B, H, N_q, D) and the log-sum-exp of the visible scores (B, H, N_q); 0 and -inf in
        a row that sees nothing.
    """
    positions = sequence_positions(q.shape[2], k.shape[2], q.device)
    hidden = ~mask.visible(*positions)  # (B or 1, 1, N_q, N_k)
    scores = q @ k.mT * scale  # (B, H, N_q, N_k)
    bias = mask.bias(*positions, scores.dtype)
    if bias is not None:
        scores = scores + bias
    scores = scores.masked_fill(hidden, -torch.inf)
    weights = scores.softmax(dim=-1).masked_fill(hidden, 0.0)
    return weights @ v, scores.logsumexp(dim=-1).to(accumulator_dtype(q.dtype))
