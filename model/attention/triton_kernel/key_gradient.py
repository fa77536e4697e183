"""The backward kernel for keys and values: one program a tile, over the queries that see it.

Weights are worked out as in the kernel for queries, which has to run before, and transposed: scores
are (keys, queries), so that no product needs its operand turned.

Axis legend: B batch, H heads, N_q queries, N_k keys, D head width; n, m queries and keys of a tile.
"""

from __future__ import annotations

import triton
import triton.language as tl

from model.attention.triton_kernel.score import (
    COUNTS,
    LOG2_E,
    inside,
    keys_here,
    load_tile,
    product,
    query_tiles,
    scores,
    tile_offsets,
)


@triton.jit
def _visit_queries(
    tile,
    d_k,
    d_v,
    k,
    v,
    keys,
    k_positions,
    q,
    d_output,
    lse,
    shared,
    q_offsets,
    do_offsets,
    q_stride,
    do_stride,
    slope,
    n_q,
    n_k,
    score_scale,
    window,
    sinks,
    WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
    TILE_Q: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOWED: tl.constexpr,
    SLOPED: tl.constexpr,
    VALIDATED: tl.constexpr,
    WIDEN: tl.constexpr,
    CUT: tl.constexpr,
):
    """Gradients of keys and values (m, D) after one more tile of queries; scores are (m, n)."""
    q_lo = tile * TILE_Q
    rows = q_lo + tl.arange(0, TILE_Q)
    row_lse = tl.load(lse + rows, mask=rows < n_q, other=float("-inf"))
    lit = row_lse > float("-inf")
    row_lse = tl.where(lit, row_lse, 0.0) * LOG2_E
    row_shared = tl.load(shared + rows, mask=lit, other=0.0)
    first = tl.cast(q_lo, tl.int64)
    q_tile = load_tile(q + first * q_stride, q_offsets, lit, WIDTH, PADDED, CUT or VALIDATED)
    do_tile = load_tile(
        d_output + first * do_stride, do_offsets, lit, WIDTH, PADDED, CUT or VALIDATED
    )
    s = scores(
        product(k, tl.trans(q_tile), WIDEN) * score_scale,
        (rows + n_k - n_q)[None, :],
        k_positions[:, None],
        keys[:, None] & lit[None, :],
        slope,
        window,
        sinks,
        CAUSAL,
        WINDOWED,
        SLOPED,
        VALIDATED,
        CUT,
    )  # (m, n)
    weights = tl.exp2(s - row_lse[None, :])
    d_v += product(weights.to(do_tile.dtype), do_tile, WIDEN)
    d_weights = product(v, tl.trans(do_tile), WIDEN)
    d_scores = weights * (d_weights - row_shared[None, :])
    d_k += product(d_scores.to(q_tile.dtype), q_tile, WIDEN)
    return d_k, d_v


@triton.jit(do_not_specialize=COUNTS)
def key_kernel(
    q,
    k,
    v,
    key_valid,
    slopes,
    lse,
    d_output,
    shared,
    d_k,
    d_v,
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
    do_stride_b,
    do_stride_h,
    do_stride_n,
    do_stride_d,
    dk_stride_b,
    dk_stride_h,
    dk_stride_n,
    heads,
    n_q,
    n_k,
    scale,
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
    """Gradients of one tile of keys and its values; both lie alike in memory."""
    tiles = tl.cdiv(n_k, TILE_K)
    row = tl.cast(tl.program_id(0) // tiles, tl.int64)
    batch, head = row // heads, row % heads
    k_lo = tl.program_id(0) % tiles * TILE_K
    k_positions = k_lo + tl.arange(0, TILE_K)
    if VALIDATED:
        key_valid += batch * n_k
    keys = keys_here(k_positions, key_valid, n_k, n_k - n_q, window, sinks, WINDOWED, VALIDATED)
    lo = tl.cast(k_lo, tl.int64)
    k_first = k + batch * k_stride_b + head * k_stride_h + lo * k_stride_n
    k_offsets = tile_offsets(k_stride_n, k_stride_d, TILE_K, PADDED)
    k_tile = load_tile(k_first, k_offsets, keys, WIDTH, PADDED, True)  # (m, D)
    v_first = v + batch * v_stride_b + head * v_stride_h + lo * v_stride_n
    v_offsets = tile_offsets(v_stride_n, v_stride_d, TILE_K, PADDED)
    v_tile = load_tile(v_first, v_offsets, keys, WIDTH, PADDED, True)
    q += batch * q_stride_b + head * q_stride_h
    d_output += batch * do_stride_b + head * do_stride_h
    q_offsets = tile_offsets(q_stride_n, q_stride_d, TILE_Q, PADDED)
    do_offsets = tile_offsets(do_stride_n, do_stride_d, TILE_Q, PADDED)
    lse += row * n_q
    shared += row * n_q
    slope = 0.0
    if SLOPED:
        slope = tl.load(slopes + head) * LOG2_E

    k_total = tl.zeros((TILE_K, PADDED), tl.float32)
    v_total = tl.zeros((TILE_K, PADDED), tl.float32)
    first, last, full_first, full_last = query_tiles(
        k_lo, n_q, n_k, window, sinks, TILE_Q, TILE_K, CAUSAL, WINDOWED
    )
    for tile in range(full_first, full_last):
        k_total, v_total = _visit_queries(
            tile, k_total, v_total, k_tile, v_tile, keys, k_positions, q, d_output, lse, shared,
            q_offsets, do_offsets, q_stride_n, do_stride_n, slope, n_q, n_k, scale * LOG2_E, window,
            sinks, WIDTH, PADDED, TILE_Q, CAUSAL, WINDOWED, SLOPED, VALIDATED, WIDEN, CUT=False,
        )  # fmt: skip
    for turn in range(first, last - (full_last - full_first)):
        tile = tl.where(turn < full_first, turn, turn + full_last - full_first)
        k_total, v_total = _visit_queries(
            tile, k_total, v_total, k_tile, v_tile, keys, k_positions, q, d_output, lse, shared,
            q_offsets, do_offsets, q_stride_n, do_stride_n, slope, n_q, n_k, scale * LOG2_E, window,
            sinks, WIDTH, PADDED, TILE_Q, CAUSAL, WINDOWED, SLOPED, VALIDATED, WIDEN, CUT=True,
        )  # fmt: skip
    start = batch * dk_stride_b + head * dk_stride_h + lo * dk_stride_n
    offsets = start + tile_offsets(dk_stride_n, 1, TILE_K, PADDED)
    written = inside(k_positions < n_k, WIDTH, PADDED)
    tl.store(d_k + offsets, (k_total * scale).to(d_k.dtype.element_ty), mask=written)
    tl.store(d_v + offsets, v_total.to(d_v.dtype.element_ty), mask=written)
