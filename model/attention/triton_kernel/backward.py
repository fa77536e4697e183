"""Running the backward kernels: first that for queries, then that for keys and values.

Each gradient is summed by one program in one order, so the same call gives the same bits; nothing
is added across programs.

Axis legend: B batch, H heads, N_q queries, N_k keys, D head width.
"""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from model.attention.triton_kernel.key_gradient import key_kernel
from model.attention.triton_kernel.query_gradient import query_kernel
from model.attention.triton_kernel.tiles import Tiles, padded_width


def run_backward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_valid: Tensor | None,
    slopes: Tensor | None,
    output: Tensor,
    lse: Tensor,
    d_output: Tensor,
    d_lse: Tensor,
    d_q: Tensor,
    d_k: Tensor,
    d_v: Tensor,
    scale: float,
    causal: bool,
    window: int,
    sinks: int,
    tiles: Tiles,
    widen: bool,
) -> None:
    """Fill `d_q`, `d_k` and `d_v`.

    Args:
        q: (B, H, N_q, D), not empty.
        k: (B, H, N_k, D).
        v: (B, H, N_k, D).
        key_valid: uint8 (B, N_k), dense.
        slopes: float32 (H,), dense.
        output: (B, H, N_q, D) of the forward kernel.
        lse: float32 (B, H, N_q) of the forward kernel.
        d_output: (B, H, N_q, D), any strides.
        d_lse: float32 (B, H, N_q), dense.
        d_q: (B, H, N_q, D) with dense rows.
        d_k: (B, H, N_k, D) with dense rows.
        d_v: Like `d_k`, in the same strides.
        scale: Factor of the scores.
        causal: Whether later keys are hidden.
        window: Keys at this distance and beyond are hidden, 0 for none.
        sinks: First keys that a window does not hide.
        tiles: Their shape.
        widen: Whether products widen their operands first.
    """
    batch, heads, n_q, width = q.shape
    n_k = k.shape[2]
    shared = torch.empty_like(lse)
    terms = (heads, n_q, n_k, scale, window, sinks)
    constants = {
        "WIDTH": width, "PADDED": padded_width(width),
        "TILE_Q": tiles.queries, "TILE_K": tiles.keys,
        "CAUSAL": causal, "WINDOWED": window > 0, "SLOPED": slopes is not None,
        "VALIDATED": key_valid is not None, "WIDEN": widen,
        "num_warps": tiles.warps, "num_stages": tiles.stages,
    }  # fmt: skip
    with torch.cuda.device_of(q):
        query_kernel[batch * heads * triton.cdiv(n_q, tiles.queries),](
            q, k, v, key_valid, slopes, output, lse, d_output, d_lse, shared, d_q,
            *q.stride(), *k.stride(), *v.stride(), *output.stride()[:3], *d_output.stride(),
            *d_q.stride()[:3], *terms, **constants, NARROW=q.dtype != torch.float32,
        )  # fmt: skip
        if n_k == 0:
            return
        key_kernel[batch * heads * triton.cdiv(n_k, tiles.keys),](
            q, k, v, key_valid, slopes, lse, d_output, shared, d_k, d_v,
            *q.stride(), *k.stride(), *v.stride(), *d_output.stride(),
            *d_k.stride()[:3], *terms, **constants,
        )  # fmt: skip
