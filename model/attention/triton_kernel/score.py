"""What forward and backward share: tiles read with a mask, products, scores, and who sees whom.

Functions of Triton: they run inside the kernels. Arguments in capitals are constants of a
compilation, and what they exclude is not compiled. Nothing else is annotated: Triton would take an
annotation for a variable.

Axis legend: n queries and m keys of a tile, D head width padded to a power of two.
"""

from __future__ import annotations

import math

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1 / math.log(2))
LN_2 = tl.constexpr(math.log(2))
COUNTS = ["heads", "n_q", "n_k", "window", "sinks"]
"""Arguments of which another value must not mean another compilation."""


@triton.jit
def tile_offsets(stride_row, stride_channel, ROWS: tl.constexpr, PADDED: tl.constexpr):
    """Where the numbers of a tile (ROWS, PADDED) lie, from its first."""
    rows = tl.arange(0, ROWS).to(tl.int64)
    channels = tl.arange(0, PADDED).to(tl.int64)
    return rows[:, None] * stride_row + channels[None, :] * stride_channel


@triton.jit
def inside(here, WIDTH: tl.constexpr, PADDED: tl.constexpr):
    """Which numbers of a tile are to be read or written, of the rows that are `here`."""
    return here[:, None] & (tl.arange(0, PADDED) < WIDTH)[None, :]


@triton.jit
def load_tile(
    first,
    offsets,
    here,
    WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
    MASKED: tl.constexpr,
):
    """Rows of a tile, zeros in those that are not `here`: what is left out is never read."""
    if MASKED or WIDTH != PADDED:
        tile = tl.load(first + offsets, mask=inside(here, WIDTH, PADDED), other=0.0)
    else:
        tile = tl.load(first + offsets)
    return tile


@triton.jit
def product(a, b, WIDEN: tl.constexpr):
    """Matrix product, summed in float32; float32 is not narrowed to TF32 for it."""
    if WIDEN:
        # The interpreter cannot multiply bfloat16; products of it are exact in float32 anyway.
        a = a.to(tl.float32)
        b = b.to(tl.float32)
    return tl.dot(a, b, input_precision="ieee")


@triton.jit
def keys_here(
    positions,
    key_valid,
    n_k,
    first_query,
    window,
    sinks,
    WINDOWED: tl.constexpr,
    VALIDATED: tl.constexpr,
):
    """Which keys (m,) some query may see: existing, within reach of the windows, and valid."""
    here = positions < n_k
    if WINDOWED:
        here = here & ((positions > first_query - window) | (positions < sinks))
    if VALIDATED:
        here = here & (tl.load(key_valid + positions, mask=here, other=0) != 0)
    return here


@triton.jit
def scores(
    products,
    q_at,
    k_at,
    here,
    slope,
    window,
    sinks,
    CAUSAL: tl.constexpr,
    WINDOWED: tl.constexpr,
    SLOPED: tl.constexpr,
    VALIDATED: tl.constexpr,
    CUT: tl.constexpr,
):
    """Scores with their bias, -inf where hidden, in units of log 2.

    Queries may be rows and keys columns, or the other way round: `q_at`, `k_at` and `here` are
    shaped for it. `CUT` says that the mask hides a part of the tile by position.
    """
    if SLOPED:
        products = products - slope * tl.abs(q_at - k_at).to(tl.float32)
    if CUT:
        if CAUSAL:
            here = here & (q_at >= k_at)
        if WINDOWED:
            here = here & ((tl.abs(q_at - k_at) < window) | (k_at < sinks))
    if CUT or VALIDATED:
        products = tl.where(here, products, float("-inf"))
    return products


@triton.jit
def key_tiles(
    q_lo,
    n_q,
    n_k,
    window,
    sinks,
    TILE_Q: tl.constexpr,
    TILE_K: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOWED: tl.constexpr,
):
    """Tiles of keys of which the queries from `q_lo` on see something.

    Returns:
        Number of leading tiles for the sinks, then the range [first, last) of the others, and
        the range [full_first, full_last) within it of which every pair is visible by position.
    """
    begin = q_lo + n_k - n_q  # positions [begin, end) of the queries
    end = tl.minimum(q_lo + TILE_Q, n_q) + n_k - n_q
    stop = tl.maximum(tl.minimum(n_k, end), 0) if CAUSAL else n_k
    full_stop = tl.minimum(n_k, begin + 1) if CAUSAL else n_k
    sink_tiles = 0
    first = 0
    full_first = 0
    if WINDOWED:
        sink_tiles = tl.cdiv(tl.minimum(sinks, stop), TILE_K)
        first = tl.maximum(tl.maximum(begin - window + 1, 0) // TILE_K, sink_tiles)
        full_first = tl.cdiv(tl.maximum(end - window, 0), TILE_K)
        if not CAUSAL:
            stop = tl.minimum(n_k, tl.maximum(end - 1 + window, 0))
            full_stop = tl.minimum(n_k, begin + window)
    last = tl.maximum(tl.cdiv(stop, TILE_K), first)
    full_first = tl.minimum(tl.maximum(full_first, first), last)
    full_last = tl.minimum(tl.maximum(tl.maximum(full_stop, 0) // TILE_K, full_first), last)
    return sink_tiles, first, last, full_first, full_last


@triton.jit
def query_tiles(
    k_lo,
    n_q,
    n_k,
    window,
    sinks,
    TILE_Q: tl.constexpr,
    TILE_K: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOWED: tl.constexpr,
):
    """Tiles of queries that see something of the keys from `k_lo` on.

    Returns:
        Their range [first, last), and the range [full_first, full_last) within it of which every
        pair is visible by position.
    """
    offset = n_k - n_q  # position of query 0
    k_hi = tl.minimum(k_lo + TILE_K, n_k)
    start = k_lo if CAUSAL else offset
    stop = n_k
    full_start = k_hi - 1 if CAUSAL else offset
    full_stop = n_k
    if WINDOWED:
        full_stop = tl.minimum(n_k, k_lo + window)
        stop = tl.where(k_lo < sinks, n_k, tl.minimum(n_k, k_hi - 1 + window))
        if not CAUSAL:
            full_start = tl.maximum(offset, k_hi - window)
            start = tl.where(k_lo < sinks, offset, tl.maximum(offset, k_lo - window + 1))
    first = tl.maximum(start - offset, 0) // TILE_Q
    last = tl.maximum(tl.cdiv(tl.maximum(stop - offset, 0), TILE_Q), first)
    full_first = tl.cdiv(tl.maximum(full_start - offset, 0), TILE_Q)
    full_first = tl.minimum(tl.maximum(full_first, first), last)
    # A tile that goes beyond the last key hides that from everyone.
    full_stop = tl.where(k_lo + TILE_K > n_k, offset, full_stop)
    full_last = tl.maximum(full_stop - offset, 0) // TILE_Q
    full_last = tl.minimum(tl.maximum(full_last, full_first), last)
    return first, last, full_first, full_last
