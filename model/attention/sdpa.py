"""torch's own scaled dot product attention with the meaning of the reference.

Fastest where torch has a fused kernel: no mask at all, causal between equal lengths, or one row of
valid keys. Any other mask is handed over as a dense array and costs O(B N_q N_k) memory, times H
with ALiBi.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from model.attention.mask import Mask, sequence_positions


def sdpa_attention(q: Tensor, k: Tensor, v: Tensor, mask: Mask, scale: float) -> Tensor:
    """Output of torch's kernel; 0, with zero gradients, in a row that sees nothing.

    torch's kernels do not agree on such rows: one gives zeros, another NaN. They are therefore
    shown everything, and their answer is replaced.

    Args:
        q: (B, H, N_q, D).
        k: (B, H, N_k, D), finite where no query sees it.
        v: (B, H, N_k, D), likewise.
        mask: Who sees whom.
        scale: Factor of the scores.

    Returns:
        (B, H, N_q, D).
    """
    n_q, n_k = q.shape[2], k.shape[2]
    if not mask.needs_matrix(n_q, n_k) and mask.key_valid is None:
        return scaled_dot_product_attention(q, k, v, is_causal=mask.causal, scale=scale)
    positions = sequence_positions(n_q, n_k, q.device)
    if mask.key_valid is not None and not mask.needs_matrix(n_q, n_k):
        visible = mask.key_valid[:, None, None, :]  # (B, 1, 1, N_k)
    else:
        visible = mask.visible(*positions)  # (B or 1, 1, N_q, N_k)
    sees_something = visible.any(dim=-1, keepdim=True)  # (B or 1, 1, N_q or 1, 1)
    shown = visible | ~sees_something
    bias = mask.bias(*positions, q.dtype)
    if bias is not None:
        shown = torch.where(shown, bias, -torch.inf)  # (B or 1, H, N_q, N_k)
    output = scaled_dot_product_attention(q, k, v, attn_mask=shown, scale=scale)
    return torch.where(sees_something, output, 0.0)
