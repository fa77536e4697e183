"""Which query may see which key, as a function of positions.

A mask is asked, never stored as a matrix: for a tile of positions by the tiled kernel, for all of
them by the dense definition, and for the mere corners of a tile by the planner that skips tiles.
Positions are right-aligned: with N_q queries and N_k keys, key j sits at position j and query i at
N_k - N_q + i, so that the last query and the last key are the same moment.

Axis legend: B batch, H heads, N_q queries, N_k keys.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import torch
from torch import Tensor

from model.errors import AttentionError


class TileVisibility(Enum):
    """What a mask leaves of a rectangle of (query, key) pairs."""

    NONE = "none"
    PARTIAL = "partial"
    FULL = "full"


@dataclass(frozen=True, slots=True, eq=False)
class Mask:
    """Who sees whom: `(near or sink) and not later and valid`, each term only where it is set.

    Attributes:
        causal: A query sees no key after its own position.
        window: W: a query sees the keys at distance |q - k| < W, itself included: with `causal` the
            last W, without it W - 1 to either side too. None is no limit.
        sinks: S: the keys at positions 0..S-1 are seen from beyond the window too, though under
            `causal` never before their time. Only with a window: without one nothing is beyond it.
        key_valid: bool (B, N_k); a key that is False is seen by nobody, and nothing of it, NaN
            included, reaches a result or a gradient. None is all valid.
        alibi_slopes: (H,) of constants: a score is lowered by slope * |q - k| (Press et al., 2022).

    Raises:
        AttentionError: A term has a value or shape that means nothing.
    """

    causal: bool = False
    window: int | None = None
    sinks: int = 0
    key_valid: Tensor | None = None
    alibi_slopes: Tensor | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.causal, bool):
            raise AttentionError(f"expected causal as True or False, got {self.causal!r}")
        if self.window is not None and not _is_count(self.window, 1):
            raise AttentionError(
                f"expected a window of at least 1 key, got {self.window!r}; it is a whole number "
                f"below 2**63, and None is no window"
            )
        if not _is_count(self.sinks, 0):
            raise AttentionError(
                f"expected a number of sinks >= 0, got {self.sinks!r}; it is a whole number below "
                f"2**63"
            )
        if self.sinks and self.window is None:
            raise AttentionError(
                f"expected a window beside sinks, which are what is seen from beyond it, got "
                f"sinks {self.sinks} and no window; leave them out, or give a window"
            )
        valid, slopes = self.key_valid, self.alibi_slopes
        if valid is not None and (valid.dtype != torch.bool or valid.ndim != 2):
            raise AttentionError(
                f"expected key_valid as bool (B, N_k), got {valid.dtype} {tuple(valid.shape)}"
            )
        if slopes is not None and (
            slopes.ndim != 1 or not slopes.is_floating_point() or slopes.requires_grad
        ):
            raise AttentionError(
                f"expected alibi_slopes as floating-point constants (H,), got {slopes.dtype} "
                f"{tuple(slopes.shape)}, requires_grad={slopes.requires_grad}; detach() them"
            )

    def reduced(self, n_q: int, n_k: int) -> Mask:
        """The same mask without the terms that hide nothing at these lengths.

        A single query comes after all keys, and a window as wide as the sequence is none.
        """
        causal = self.causal and n_q > 1
        window = self.window if self.window is not None and self.window < max(n_q, n_k) else None
        return replace(self, causal=causal, window=window, sinks=self.sinks if window else 0)

    def needs_matrix(self, n_q: int, n_k: int) -> bool:
        """Whether only an (N_q, N_k) array can say this mask to a kernel that knows no positions.

        Such a kernel knows "causal" between equal lengths, or one row of valid keys, not both.
        """
        if self.window is not None or self.alibi_slopes is not None:
            return True
        return self.causal and (self.key_valid is not None or n_q != n_k)

    def visible(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        """The definition, pair by pair.

        Args:
            q_positions: int64 (n,), positions of queries.
            k_positions: int64 (m,), positions of keys, each in 0..N_k-1.

        Returns:
            bool (B, 1, n, m) with `key_valid`, else (1, 1, n, m).
        """
        distance = q_positions[:, None] - k_positions[None, :]  # (n, m)
        seen = torch.ones_like(distance, dtype=torch.bool)
        if self.window is not None:
            seen = (distance.abs() < self.window) | (k_positions < self.sinks)
        if self.causal:
            seen = seen & (distance >= 0)
        seen = seen[None, None]  # (1, 1, n, m)
        if self.key_valid is not None:
            seen = seen & self.key_valid[:, None, None, k_positions]  # (B, 1, n, m)
        return seen

    def bias(self, q_positions: Tensor, k_positions: Tensor, dtype: torch.dtype) -> Tensor | None:
        """What is added to the scores: `-slope * |q - k|` as (1, H, n, m), None without slopes."""
        if self.alibi_slopes is None:
            return None
        distance = (q_positions[:, None] - k_positions[None, :]).abs().to(dtype)  # (n, m)
        return -self.alibi_slopes.to(dtype)[None, :, None, None] * distance

    def tile_visibility(self, q_lo: int, q_hi: int, k_lo: int, k_hi: int) -> TileVisibility:
        """What is visible of the tile of positions [q_lo, q_hi) x [k_lo, k_hi), from its corners.

        NONE is exact as far as positions decide. FULL is never said where a pair is hidden, but a
        full tile may be called PARTIAL: where sinks and window cover it only together, and always
        with `key_valid`, whose values are data that is not looked at here.
        """
        least, most = q_lo - (k_hi - 1), (q_hi - 1) - k_lo  # range of q - k over the tile
        some = every = True
        if self.window is not None:
            some = (least < self.window and most > -self.window) or k_lo < self.sinks
            every = (most < self.window and least > -self.window) or k_hi <= self.sinks
        if self.causal:
            some, every = some and most >= 0, every and least >= 0
        if not some:
            return TileVisibility.NONE
        return TileVisibility.FULL if every and self.key_valid is None else TileVisibility.PARTIAL

    def seen_keys(self, n_q: int, n_k: int, device: torch.device) -> Tensor | None:
        """Keys that at least one query may see: bool (B, N_k) or (1, N_k), None where all are.

        O(N_k): every key from the first query's position on is seen by the query at its own.
        """
        if self.window is None:
            return self.key_valid
        k_positions = torch.arange(n_k, device=device)
        reached = (k_positions > n_k - n_q - self.window) | (k_positions < self.sinks)
        return reached[None] if self.key_valid is None else reached[None] & self.key_valid


def _is_count(value: Any, least: int) -> bool:
    """Whether it is a whole number that kernels can be told; True and 2.0 are none."""
    whole = isinstance(value, int | torch.SymInt) and not isinstance(value, bool)
    return whole and bool(least <= value < 2**63)


#: Every query sees every key.
UNMASKED = Mask()


def sequence_positions(n_q: int, n_k: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Right-aligned positions of all queries (N_q,) and all keys (N_k,), int64."""
    k_positions = torch.arange(n_k, device=device)
    return torch.arange(n_k - n_q, n_k, device=device), k_positions
