"""Rotary position embedding: a channel pair turns by an angle that grows with the position.

Scores then depend on the difference of positions only (Su et al., RoFormer, 2021). Angles are
worked out in float64 from the integer position and cast afterwards: in float32 the angle at
position 10^6 is already wrong by a few hundredths of a radian.

Axis legend: B batch, H heads, N positions, D head width. Channel i pairs with channel i + D // 2;
where D is odd, the last channel does not turn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from model.errors import AttentionError


@dataclass(frozen=True, slots=True, eq=False)
class RotaryTable:
    """Cosine and sine of every angle.

    Attributes:
        cos: (N, D // 2), or (B, N, D // 2) where each batch row has its own positions.
        sin: Same shape, type and device as `cos`.
    """

    cos: Tensor
    sin: Tensor

    def __post_init__(self) -> None:
        if self.cos.shape != self.sin.shape or self.cos.ndim not in (2, 3):
            raise AttentionError(
                "expected cos and sin of one shape, (N, D // 2) or (B, N, D // 2), got "
                f"{tuple(self.cos.shape)} and {tuple(self.sin.shape)}"
            )

    @property
    def length(self) -> int:
        """Number of positions N."""
        return self.cos.shape[-2]

    def last(self, count: int) -> RotaryTable:
        """The rows of the last `count` positions; none is copied."""
        start = self.length - count
        return RotaryTable(self.cos[..., start:, :], self.sin[..., start:, :])


def rotary_table(
    positions: Tensor,
    head_dim: int,
    base: float = 10_000.0,
    dtype: torch.dtype = torch.float32,
) -> RotaryTable:
    """Angles of all positions: pair i turns by `position * base ** (-i / (D // 2))`.

    Args:
        positions: int64 (N,) or (B, N); any origin, negative ones too.
        head_dim: Head width D; an odd one gives D // 2 pairs.
        base: Ratio of the slowest to the fastest turn, above 0.
        dtype: Type of the result; the angles themselves are float64.

    Returns:
        A table on the device of `positions`.

    Raises:
        AttentionError: Positions are not int64 of one or two dimensions, or `head_dim` or `base`
            is not positive.
    """
    if positions.dtype != torch.int64 or positions.ndim not in (1, 2):
        raise AttentionError(
            f"expected int64 positions of shape (N,) or (B, N), got {positions.dtype} "
            f"{tuple(positions.shape)}; a float index loses the far positions"
        )
    if head_dim < 1 or not (base > 0 and math.isfinite(base)):
        raise AttentionError(
            f"expected a head width >= 1 and a finite base > 0, got {head_dim} and {base}"
        )
    pair = torch.arange(head_dim // 2, dtype=torch.float64, device=positions.device)
    frequency = base ** (-pair / (head_dim // 2))  # (D // 2,)
    angle = positions.to(torch.float64).unsqueeze(-1) * frequency  # (..., N, D // 2)
    return RotaryTable(cos=angle.cos().to(dtype), sin=angle.sin().to(dtype))


def apply_rotary(x: Tensor, table: RotaryTable) -> Tensor:
    """Turn the channel pairs of every token by the angles of its position.

    Args:
        x: (B, H, N, D) in any strides.
        table: Table of the same N positions, for one or for B batch rows.

    Returns:
        (B, H, N, D) in the type of `x`; the turn itself is done in the wider of both types.

    Raises:
        AttentionError: The table has another number of positions, pairs or batch rows.
    """
    half = x.shape[-1] // 2
    if (table.length, table.cos.shape[-1]) != (x.shape[-2], half) or (
        table.cos.ndim == 3 and table.cos.shape[0] not in (1, x.shape[0])
    ):
        raise AttentionError(
            f"expected a rotary table of {x.shape[-2]} positions x {half} pairs for tokens of "
            f"shape {tuple(x.shape)}, got {tuple(table.cos.shape)}"
        )
    cos, sin = table.cos, table.sin
    if cos.ndim == 3:
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)  # (B, 1, N, D // 2)
    first, second = x[..., :half], x[..., half : 2 * half]
    turned = (first * cos - second * sin, second * cos + first * sin)
    return torch.cat([*(part.to(x.dtype) for part in turned), x[..., 2 * half :]], dim=-1)
