"""The forward kernel: one program a tile of queries, over the tiles of keys that it sees.

The loop is that of `model.attention.tiled`, with scores in units of log 2. Tiles of which every
pair is visible go by without a mask, the others in a second loop; their order does not matter.

Axis legend: B batch, H heads, N_q queries, N_k keys, D head width; n, m queries and keys of a tile.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from model.attention.triton_kernel.score import (
    COUNTS,
    LN_2,
    LOG2_E,
    inside,
    key_tiles,
    keys_here,
    load_tile,
    product,
    scores,
    tile_offsets,
)
from model.attention.triton_kernel.tiles import Tiles, padded_width


@triton.jit
def _visit(
    tile,
    largest,
    total,
    weighted,
    q,
    q_positions,
    k,
    v,
    k_offsets,
    v_offsets,
    k_stride,
    v_stride,
    key_valid,
    slope,
    n_q,
    n_k,
    score_scale,
    window,
    sinks,
    WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
    TILE_K: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOWED: tl.constexpr,
    SLOPED: tl.constexpr,
    VALIDATED: tl.constexpr,
    WIDEN: tl.constexpr,
    CUT: tl.constexpr,
):
    """Largest score, sum and weighted sum of every query after one more tile of keys."""
    k_lo = tile * TILE_K
    k_positions = k_lo + tl.arange(0, TILE_K)
    here = keys_here(
        k_positions, key_valid, n_k, n_k - n_q, window, sinks, WINDOWED, VALIDATED
    )  # (m,)
    first = tl.cast(k_lo, tl.int64)
    k_tile = load_tile(k + first * k_stride, k_offsets, here, WIDTH, PADDED, CUT or VALIDATED)
    s = scores(
        product(q, tl.trans(k_tile), WIDEN) * score_scale,
        q_positions[:, None],
        k_positions[None, :],
        here[None, :],
        slope,
        window,
        sinks,
        CAUSAL,
        WINDOWED,
        SLOPED,
        VALIDATED,
        CUT,
    )  # (n, m)
    new_largest = tl.maximum(largest, tl.max(s, 1))
    # A row that has seen nothing yet has -inf; -inf less -inf would be NaN, -inf less 0 is not.
    pivot = tl.where(new_largest == float("-inf"), 0.0, new_largest)
    weights = tl.exp2(s - pivot[:, None])
    shrink = tl.exp2(largest - pivot)
    v_tile = load_tile(v + first * v_stride, v_offsets, here, WIDTH, PADDED, CUT or VALIDATED)
    total = total * shrink + tl.sum(weights, 1)
    weighted = weighted * shrink[:, None] + product(weights.to(v_tile.dtype), v_tile, WIDEN)
    return new_largest, total, weighted


@triton.jit(do_not_specialize=COUNTS)
def forward_kernel(
    q,
    k,
    v,
    key_valid,
    slopes,
    output,
    lse,
    q_stride_b,
    q_stride_h,
    q_stride_n,
    q_stride_d,
    k_stride_b,
    k_stride_h,
    k_stride_n,
    k_stride_d,
    v_stride_b,
    v_stride_h,
    v_stride_n,
    v_stride_d,
    o_stride_b,
    o_stride_h,
    o_stride_n,
    heads,
    n_q,
    n_k,
    score_scale,
    window,
    sinks,
    WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
    TILE_Q: tl.constexpr,
    TILE_K: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOWED: tl.constexpr,
    SLOPED: tl.constexpr,
    VALIDATED: tl.constexpr,
    WIDEN: tl.constexpr,
):
    """Output and log-sum-exp of one tile of queries of one (batch row, head)."""
    tiles = tl.cdiv(n_q, TILE_Q)
    row = tl.cast(tl.program_id(0) // tiles, tl.int64)
    batch, head = row // heads, row % heads
    q_lo = tl.program_id(0) % tiles * TILE_Q
    rows = q_lo + tl.arange(0, TILE_Q)
    rows_here = rows < n_q
    q_positions = rows + n_k - n_q
    q_first = q + batch * q_stride_b + head * q_stride_h + tl.cast(q_lo, tl.int64) * q_stride_n
    q_offsets = tile_offsets(q_stride_n, q_stride_d, TILE_Q, PADDED)
    q_tile = load_tile(q_first, q_offsets, rows_here, WIDTH, PADDED, True)  # (n, D)
    k += batch * k_stride_b + head * k_stride_h
    v += batch * v_stride_b + head * v_stride_h
    k_offsets = tile_offsets(k_stride_n, k_stride_d, TILE_K, PADDED)
    v_offsets = tile_offsets(v_stride_n, v_stride_d, TILE_K, PADDED)
    if VALIDATED:
        key_valid += batch * n_k
    slope = 0.0
    if SLOPED:
        slope = tl.load(slopes + head) * LOG2_E

    largest = tl.full((TILE_Q,), float("-inf"), tl.float32)
    total = tl.zeros((TILE_Q,), tl.float32)
    weighted = tl.zeros((TILE_Q, PADDED), tl.float32)
    sink_tiles, first, last, full_first, full_last = key_tiles(
        q_lo, n_q, n_k, window, sinks, TILE_Q, TILE_K, CAUSAL, WINDOWED
    )
    for tile in range(full_first, full_last):
        largest, total, weighted = _visit(
            tile, largest, total, weighted, q_tile, q_positions, k, v, k_offsets, v_offsets,
            k_stride_n, v_stride_n, key_valid, slope, n_q, n_k, score_scale, window, sinks,
            WIDTH, PADDED, TILE_K, CAUSAL, WINDOWED, SLOPED, VALIDATED, WIDEN, CUT=False,
        )  # fmt: skip
    for turn in range(0, sink_tiles + last - first - (full_last - full_first)):
        tile = tl.where(turn < sink_tiles, turn, turn - sink_tiles + first)
        tile = tl.where(tile < full_first, tile, tile + full_last - full_first)
        largest, total, weighted = _visit(
            tile, largest, total, weighted, q_tile, q_positions, k, v, k_offsets, v_offsets,
            k_stride_n, v_stride_n, key_valid, slope, n_q, n_k, score_scale, window, sinks,
            WIDTH, PADDED, TILE_K, CAUSAL, WINDOWED, SLOPED, VALIDATED, WIDEN, CUT=True,
        )  # fmt: skip

    sighted = tl.where(total == 0, 1.0, total)
    weighted = weighted / sighted[:, None]
    o_first = output + batch * o_stride_b + head * o_stride_h
    o_offsets = tile_offsets(o_stride_n, 1, TILE_Q, PADDED)
    tl.store(
        o_first + tl.cast(q_lo, tl.int64) * o_stride_n + o_offsets,
        weighted.to(output.dtype.element_ty),
        mask=inside(rows_here, WIDTH, PADDED),
    )
    tl.store(lse + row * n_q + rows, (largest + tl.log2(sighted)) * LN_2, mask=rows_here)


def run_forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_valid: Tensor | None,
    slopes: Tensor | None,
    output: Tensor,
    lse: Tensor,
    scale: float,
    causal: bool,
    window: int,
    sinks: int,
    tiles: Tiles,
    widen: bool,
) -> None:
    """Fill `output` and `lse`.

    Args:
        q: (B, H, N_q, D), not empty.
        k: (B, H, N_k, D).
        v: (B, H, N_k, D).
        key_valid: uint8 (B, N_k), dense.
        slopes: float32 (H,), dense.
        output: (B, H, N_q, D) with dense rows.
        lse: float32 (B, H, N_q), dense.
        scale: Factor of the scores.
        causal: Whether later keys are hidden.
        window: Keys at this distance and beyond are hidden, 0 for none.
        sinks: First keys that a window does not hide.
        tiles: Their shape.
        widen: Whether products widen their operands first.
    """
    batch, heads, n_q, width = q.shape
    with torch.cuda.device_of(q):
        forward_kernel[batch * heads * triton.cdiv(n_q, tiles.queries),](
            q, k, v, key_valid, slopes, output, lse,
            *q.stride(), *k.stride(), *v.stride(), *output.stride()[:3],
            heads, n_q, k.shape[2], scale * LOG2_E.value, window, sinks,
            WIDTH=width, PADDED=padded_width(width), TILE_Q=tiles.queries, TILE_K=tiles.keys,
            CAUSAL=causal, WINDOWED=window > 0, SLOPED=slopes is not None,
            VALIDATED=key_valid is not None, WIDEN=widen,
            num_warps=tiles.warps, num_stages=tiles.stages,
        )  # fmt: skip
