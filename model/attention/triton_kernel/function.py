"""The kernel as a function of the package's own values, with gradients.

Axis legend: B batch, H heads, N_q queries, N_k keys, D head width.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import forward_ad

from model.attention.inputs import QkNorm, prepare
from model.attention.mask import Mask
from model.attention.triton_kernel.toolchain import load
from model.rotary import RotaryTable

MAX_WIDTH = 256
TYPES = frozenset({torch.float32, torch.bfloat16, torch.float16})


def supports(q: Tensor) -> bool:
    """Whether the kernel can answer for such queries on this machine."""
    return (
        q.dtype in TYPES
        and q.dim() == 4
        and q.shape[3] <= MAX_WIDTH
        and forward_ad._current_level < 0  # there are no derivatives forward
        and _usable()
        and (q.is_cuda or (q.is_cpu and _interpreted()))
    )


def _usable() -> bool:
    """Whether there is a kernel; a compiled program is of one mind about it."""
    return load().usable


def _interpreted() -> bool:
    return load().interpreted


# What `torch.compiler.assume_constant_result` does, without importing all of torch's compiler.
_usable._dynamo_marked_constant = True  # type: ignore[attr-defined]
_interpreted._dynamo_marked_constant = True  # type: ignore[attr-defined]


def triton_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Mask,
    rope: RotaryTable | None,
    qk_norm: QkNorm | None,
    scale: float,
    _: bool = True,
    *,
    tile_q: int = 0,
    tile_k: int = 0,
) -> tuple[Tensor, Tensor]:
    """The reference's result, exactly but for rounding, in O(N) memory.

    Norm and rotation are made by torch beforehand. Without them nothing is: the kernel itself
    leaves out keys that nobody sees.

    Args:
        q: (B, H, N_q, D), any strides.
        k: (B, H, N_k, D).
        v: (B, H, N_k, D).
        mask: Who sees whom; tiles that it hides by position are not visited.
        rope: Rotary table, right-aligned.
        qk_norm: Gains of the norm of queries and keys.
        scale: Factor of the scores.
        tile_q: Queries of a tile, a power of two from 16 on; 0 is what suits width and type.
        tile_k: Keys of a tile, likewise. The answer does not depend on tiles.

    Returns:
        Output (B, H, N_q, D) in the type of q, dense as (B, N_q, H, D), and the log-sum-exp of the
        visible scores (B, H, N_q) in float32; 0 and -inf in a row that sees nothing.
    """
    if rope is not None or qk_norm is not None:
        q, k, v = prepare(q, k, v, mask, rope, qk_norm)
    slopes = mask.alibi_slopes
    n_q, n_k = q.shape[2], k.shape[2]
    # The kernel counts in 32 bits; a term that reaches everything need not reach farther.
    window = 0 if mask.window is None else min(mask.window, max(n_q, n_k))
    output, lse = torch.ops.rancast.triton_attention(
        q,
        k,
        v,
        None if mask.key_valid is None else mask.key_valid.contiguous(),
        None if slopes is None else slopes.to(torch.float32).contiguous(),
        scale,
        mask.causal,
        window,
        min(mask.sinks, n_k),
        tile_q,
        tile_k,
    )
    return output, lse
