"""The backward kernel for queries: one program a tile of them, over the tiles of keys they see.

Weights of a tile are worked out again from the log-sum-exp. What all scores of a row share is
worked out here too, and left for the other kernel: it follows from the output, or, where that is
kept in a narrow type, from the weights, which costs another walk over the keys.

Axis legend: B batch, H heads, N_q queries, N_k keys, D head width; n, m queries and keys of a tile.
"""

from __future__ import annotations

import triton
import triton.language as tl

from model.attention.triton_kernel.score import (
    COUNTS,
    LOG2_E,
    inside,
    key_tiles,
    keys_here,
    load_tile,
    product,
    scores,
    tile_offsets,
)


@triton.jit
def _visit_keys(
    tile,
    total,
    q,
    d_output,
    row_lse,
    row_shared,
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
    SHARED: tl.constexpr,
):
    """The total after one more tile of keys.

    Of the gradient of the queries (n, D), still to be scaled; or, with `SHARED`, of the weights
    times their gradients (n,).
    """
    k_lo = tile * TILE_K
    k_positions = k_lo + tl.arange(0, TILE_K)
    here = keys_here(
        k_positions, key_valid, n_k, n_k - n_q, window, sinks, WINDOWED, VALIDATED
    )  # (m,)
    first = tl.cast(k_lo, tl.int64)
    k_tile = load_tile(k + first * k_stride, k_offsets, here, WIDTH, PADDED, CUT or VALIDATED)
    v_tile = load_tile(v + first * v_stride, v_offsets, here, WIDTH, PADDED, CUT or VALIDATED)
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
    weights = tl.exp2(s - row_lse[:, None])
    d_weights = product(d_output, tl.trans(v_tile), WIDEN)
    if SHARED:
        total += tl.sum(weights * d_weights, 1)
    else:
        d_scores = weights * (d_weights - row_shared[:, None])
        total += product(d_scores.to(k_tile.dtype), k_tile, WIDEN)
    return total


@triton.jit
def _over_keys(
    total,
    q_lo,
    q,
    d_output,
    row_lse,
    row_shared,
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
    TILE_Q: tl.constexpr,
    TILE_K: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOWED: tl.constexpr,
    SLOPED: tl.constexpr,
    VALIDATED: tl.constexpr,
    WIDEN: tl.constexpr,
    SHARED: tl.constexpr,
):
    """The total over all keys that the tile of queries sees, as `_visit_keys` sums it."""
    sink_tiles, first, last, full_first, full_last = key_tiles(
        q_lo, n_q, n_k, window, sinks, TILE_Q, TILE_K, CAUSAL, WINDOWED
    )
    for tile in range(full_first, full_last):
        total = _visit_keys(
            tile, total, q, d_output, row_lse, row_shared, q_positions, k, v, k_offsets,
            v_offsets, k_stride, v_stride, key_valid, slope, n_q, n_k, score_scale, window, sinks,
            WIDTH, PADDED, TILE_K, CAUSAL, WINDOWED, SLOPED, VALIDATED, WIDEN, CUT=False,
            SHARED=SHARED,
        )  # fmt: skip
    for turn in range(0, sink_tiles + last - first - (full_last - full_first)):
        tile = tl.where(turn < sink_tiles, turn, turn - sink_tiles + first)
        tile = tl.where(tile < full_first, tile, tile + full_last - full_first)
        total = _visit_keys(
            tile, total, q, d_output, row_lse, row_shared, q_positions, k, v, k_offsets,
            v_offsets, k_stride, v_stride, key_valid, slope, n_q, n_k, score_scale, window, sinks,
            WIDTH, PADDED, TILE_K, CAUSAL, WINDOWED, SLOPED, VALIDATED, WIDEN, CUT=True,
            SHARED=SHARED,
        )  # fmt: skip
    return total


@triton.jit(do_not_specialize=COUNTS)
def query_kernel(
    q,
    k,
    v,
    key_valid,
    slopes,
    output,
    lse,
    d_output,
    d_lse,
    shared,
    d_q,
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
    do_stride_b,
    do_stride_h,
    do_stride_n,
    do_stride_d,
    dq_stride_b,
    dq_stride_h,
    dq_stride_n,
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
    NARROW: tl.constexpr,
):
    """Gradient of one tile of queries, and what all scores of a row share, for the other kernel."""
    tiles = tl.cdiv(n_q, TILE_Q)
    row = tl.cast(tl.program_id(0) // tiles, tl.int64)
    batch, head = row // heads, row % heads
    q_lo = tl.program_id(0) % tiles * TILE_Q
    rows = q_lo + tl.arange(0, TILE_Q)
    rows_here = rows < n_q
    q_positions = rows + n_k - n_q
    lo = tl.cast(q_lo, tl.int64)
    row_lse = tl.load(lse + row * n_q + rows, mask=rows_here, other=float("-inf"))
    # A row that sees nothing takes no part, whatever gradient comes in.
    lit = row_lse > float("-inf")
    row_lse = tl.where(lit, row_lse, 0.0) * LOG2_E
    q_first = q + batch * q_stride_b + head * q_stride_h + lo * q_stride_n
    q_offsets = tile_offsets(q_stride_n, q_stride_d, TILE_Q, PADDED)
    q_tile = load_tile(q_first, q_offsets, rows_here, WIDTH, PADDED, True)  # (n, D)
    do_first = d_output + batch * do_stride_b + head * do_stride_h + lo * do_stride_n
    do_offsets = tile_offsets(do_stride_n, do_stride_d, TILE_Q, PADDED)
    do_tile = load_tile(do_first, do_offsets, lit, WIDTH, PADDED, True)
    k += batch * k_stride_b + head * k_stride_h
    v += batch * v_stride_b + head * v_stride_h
    k_offsets = tile_offsets(k_stride_n, k_stride_d, TILE_K, PADDED)
    v_offsets = tile_offsets(v_stride_n, v_stride_d, TILE_K, PADDED)
    if VALIDATED:
        key_valid += batch * n_k
    slope = 0.0
    if SLOPED:
        slope = tl.load(slopes + head) * LOG2_E

    row_shared = tl.zeros((TILE_Q,), tl.float32)
    if NARROW:
        # The output is too coarse to tell what follows from it, the weights are not.
        row_shared = _over_keys(
            row_shared, q_lo, q_tile, do_tile, row_lse, row_shared, q_positions, k, v,
            k_offsets, v_offsets, k_stride_n, v_stride_n, key_valid, slope, n_q, n_k,
            scale * LOG2_E, window, sinks,
            WIDTH, PADDED, TILE_Q, TILE_K, CAUSAL, WINDOWED, SLOPED, VALIDATED, WIDEN,
            SHARED=True,
        )  # fmt: skip
    else:
        o_first = output + batch * o_stride_b + head * o_stride_h + lo * o_stride_n
        o_offsets = tile_offsets(o_stride_n, 1, TILE_Q, PADDED)
        o_tile = load_tile(o_first, o_offsets, lit, WIDTH, PADDED, True)
        row_shared = tl.sum(o_tile.to(tl.float32) * do_tile.to(tl.float32), 1)
    row_shared -= tl.load(d_lse + row * n_q + rows, mask=lit, other=0.0)
    tl.store(shared + row * n_q + rows, row_shared, mask=rows_here)
    total = _over_keys(
        tl.zeros((TILE_Q, PADDED), tl.float32), q_lo, q_tile, do_tile, row_lse, row_shared,
        q_positions, k, v, k_offsets, v_offsets, k_stride_n, v_stride_n, key_valid, slope, n_q, n_k,
        scale * LOG2_E, window, sinks,
        WIDTH, PADDED, TILE_Q, TILE_K, CAUSAL, WINDOWED, SLOPED, VALIDATED, WIDEN,
        SHARED=False,
    )  # fmt: skip
    tl.store(
        d_q
        + (batch * dq_stride_b + head * dq_stride_h + lo * dq_stride_n)
        + tile_offsets(dq_stride_n, 1, TILE_Q, PADDED),
        (total * scale).to(d_q.dtype.element_ty),
        mask=inside(rows_here, WIDTH, PADDED),
    )
