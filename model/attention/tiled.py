"""Exact attention over tiles, in plain torch: the readable form of FlashAttention-2.

For each tile of queries the keys pass by tile by tile, while three numbers a query are kept: the
largest score so far, the sum of exponentials relative to it, and the weighted sum of values
(Milakov and Gimelshein, 2018; Dao, 2023). No array of N_q x N_k exists: backward recomputes the
weights of a tile from q, k and the log-sum-exp. Memory is O(N) beside one tile of scores.

Axis legend: B batch, H heads, N_q queries, N_k keys, D head width, n and m sides of a tile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from model.attention.inputs import accumulator_dtype
from model.attention.mask import Mask, TileVisibility
from model.errors import AttentionError

DEFAULT_TILE_Q = 128
DEFAULT_TILE_K = 256


@dataclass(frozen=True, slots=True)
class Tile:
    """Keys [k_lo, k_hi) before one tile of queries; `masked` where some pair may be hidden."""

    k_lo: int
    k_hi: int
    masked: bool


@dataclass(frozen=True, slots=True)
class TilePlan:
    """Which tiles are visited, in the kernel's order; the mask decides from positions alone.

    Attributes:
        n_q: Number of queries.
        n_k: Number of keys.
        mask: Who sees whom.
        tile_q: Queries of a tile.
        tile_k: Keys of a tile.
    """

    n_q: int
    n_k: int
    mask: Mask
    tile_q: int
    tile_k: int

    def __post_init__(self) -> None:
        if self.tile_q < 1 or self.tile_k < 1:
            raise AttentionError(
                f"expected tiles of at least 1 x 1, got {self.tile_q} x {self.tile_k}"
            )

    @property
    def offset(self) -> int:
        """Position of query 0."""
        return self.n_k - self.n_q

    def query_tiles(self) -> Iterator[tuple[int, int]]:
        """Index ranges [lo, hi) of the queries."""
        for lo in range(0, self.n_q, self.tile_q):
            yield lo, min(lo + self.tile_q, self.n_q)

    def key_tiles(self, q_lo: int, q_hi: int) -> Iterator[Tile]:
        """Tiles of keys of which the queries [q_lo, q_hi) see something."""
        for k_lo in range(0, self.n_k, self.tile_k):
            k_hi = min(k_lo + self.tile_k, self.n_k)
            visibility = self.mask.tile_visibility(
                q_lo + self.offset, q_hi + self.offset, k_lo, k_hi
            )
            if visibility is not TileVisibility.NONE:
                yield Tile(k_lo, k_hi, masked=visibility is TileVisibility.PARTIAL)


def visited_tiles(
    n_q: int, n_k: int, mask: Mask, tile_q: int = DEFAULT_TILE_Q, tile_k: int = DEFAULT_TILE_K
) -> int:
    """Number of tiles that the kernel works on, out of ceil(N_q / tile_q) * ceil(N_k / tile_k)."""
    plan = TilePlan(n_q, n_k, mask, tile_q, tile_k)
    return sum(1 for rows in plan.query_tiles() for _ in plan.key_tiles(*rows))


def tiled_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Mask,
    scale: float,
    tile_q: int = DEFAULT_TILE_Q,
    tile_k: int = DEFAULT_TILE_K,
) -> tuple[Tensor, Tensor]:
    """The reference's result, exactly but for rounding, in O(N) memory.

    Gradients of gradients are right too, but keep every tile, as the reference would.

    Args:
        q: (B, H, N_q, D), any strides.
        k: (B, H, N_k, D), finite where no query sees it.
        v: (B, H, N_k, D), likewise.
        mask: Who sees whom; tiles that it hides are not visited.
        scale: Factor of the scores.
        tile_q: Queries of a tile. The answer does not depend on it.
        tile_k: Keys of a tile. The answer does not depend on it.

    Returns:
        Output (B, H, N_q, D) in the type of q and the log-sum-exp of the visible scores
        (B, H, N_q) in float32, float64 for float64; 0 and -inf in a row that sees nothing.

    Raises:
        AttentionError: A tile side is below 1.
    """
    plan = TilePlan(q.shape[2], k.shape[2], mask, tile_q, tile_k)
    result: tuple[Tensor, Tensor] = _TiledAttention.apply(q, k, v, plan, scale)  # type: ignore[no-untyped-call]
    return result


class _TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, plan: TilePlan, scale: float
    ) -> tuple[Tensor, Tensor]:
        # Autocast would take the products back to the narrow type that the sums must not have.
        with torch.autocast(device_type=q.device.type, enabled=False):
            output, lse = _forward(q, k, v, plan, scale)
        ctx.save_for_backward(q, k, v, output, lse)
        ctx.plan, ctx.scale = plan, scale
        return output, lse

    @staticmethod
    def backward(
        ctx: Any, d_output: Tensor, d_lse: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, None, None]:
        with torch.autocast(device_type=d_output.device.type, enabled=False):
            grads = _backward(ctx.saved_tensors, d_output, d_lse, ctx.plan, ctx.scale)
        return *grads, None, None


def _forward(
    q: Tensor, k: Tensor, v: Tensor, plan: TilePlan, scale: float
) -> tuple[Tensor, Tensor]:
    dtype = accumulator_dtype(q.dtype)
    output = torch.empty_like(q, memory_format=torch.contiguous_format)
    lse = torch.empty(q.shape[:3], dtype=dtype, device=q.device)  # (B, H, N_q)
    scaled_q, k, v = _wide(q, dtype) * scale, _wide(k, dtype), _wide(v, dtype)
    for q_lo, q_hi in plan.query_tiles():
        q_tile = scaled_q[:, :, q_lo:q_hi]  # (B, H, n, D)
        largest = q_tile.new_full((*q_tile.shape[:3], 1), -torch.inf)  # (B, H, n, 1)
        total = torch.zeros_like(largest)
        weighted = torch.zeros_like(q_tile)  # (B, H, n, D)
        for tile in plan.key_tiles(q_lo, q_hi):
            scores = _scores(q_tile, k, plan, q_lo, q_hi, tile)  # (B, H, n, m)
            new_largest = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
            pivot = _finite(new_largest)
            weights = scores.sub_(pivot).exp_()
            shrink = (largest - pivot).exp_()
            total = shrink * total + weights.sum(dim=-1, keepdim=True)
            weighted = shrink * weighted + weights @ v[:, :, tile.k_lo : tile.k_hi]
            largest = new_largest
        output[:, :, q_lo:q_hi] = weighted / torch.where(total == 0, 1.0, total)
        lse[:, :, q_lo:q_hi] = (largest + total.log()).squeeze(-1)
    return output, lse


def _backward(
    saved: tuple[Tensor, ...], d_output: Tensor, d_lse: Tensor, plan: TilePlan, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v, output, lse = saved
    narrow, dtype = q.dtype, lse.dtype
    scaled_q, k, v = _wide(q, dtype) * scale, _wide(k, dtype), _wide(v, dtype)
    d_output = _wide(d_output, dtype)
    # Softmax's own term: what all scores of a row share, from the output and from the log-sum-exp.
    shared = (d_output * output).sum(dim=-1, keepdim=True) - d_lse.unsqueeze(-1)  # (B, H, N_q, 1)
    pivot = _finite(lse).unsqueeze(-1)  # (B, H, N_q, 1)
    d_q, d_k, d_v = torch.zeros_like(scaled_q), torch.zeros_like(k), torch.zeros_like(v)
    for q_lo, q_hi in plan.query_tiles():
        rows = slice(q_lo, q_hi)
        q_tile, d_tile = scaled_q[:, :, rows], d_output[:, :, rows]  # (B, H, n, D)
        for tile in plan.key_tiles(q_lo, q_hi):
            columns = slice(tile.k_lo, tile.k_hi)
            scores = _scores(q_tile, k, plan, q_lo, q_hi, tile)  # (B, H, n, m)
            weights = scores.sub_(pivot[:, :, rows]).exp_()
            d_v[:, :, columns] += weights.mT @ d_tile
            d_scores = (d_tile @ v[:, :, columns].mT).sub_(shared[:, :, rows]).mul_(weights)
            d_q[:, :, rows] += d_scores @ k[:, :, columns]
            d_k[:, :, columns] += d_scores.mT @ q_tile
    return d_q.mul_(scale).to(narrow), d_k.to(narrow), d_v.to(narrow)


def _scores(q_tile: Tensor, k: Tensor, plan: TilePlan, q_lo: int, q_hi: int, tile: Tile) -> Tensor:
    """Scores (B, H, n, m) of one tile, -inf where hidden; the mask is asked on its border only."""
    scores = q_tile @ k[:, :, tile.k_lo : tile.k_hi].mT
    if not tile.masked and plan.mask.alibi_slopes is None:
        return scores
    q_positions = torch.arange(q_lo + plan.offset, q_hi + plan.offset, device=k.device)
    k_positions = torch.arange(tile.k_lo, tile.k_hi, device=k.device)
    bias = plan.mask.bias(q_positions, k_positions, scores.dtype)
    if bias is not None:
        scores += bias
    if tile.masked:
        scores.masked_fill_(~plan.mask.visible(q_positions, k_positions), -torch.inf)
    return scores


def _wide(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    # Dense in memory, so that a product of tiles need not copy them each time.
    return tensor.to(dtype).contiguous()


def _finite(largest: Tensor) -> Tensor:
    # A row that has seen nothing yet has -inf; -inf less -inf would be NaN, -inf less 0 is not.
    return torch.where(largest == -torch.inf, 0.0, largest)
