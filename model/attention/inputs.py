"""What every backend may take for granted: checked shapes, normed and turned queries and keys.

Axis legend: B batch, H heads, N_q queries, N_k keys, D head width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import NoneType

import torch
from torch import Tensor

from model.attention.mask import Mask
from model.errors import AttentionError
from model.rotary import RotaryTable, apply_rotary


@dataclass(frozen=True, slots=True, eq=False)
class QkNorm:
    """RMS norm of queries and keys over the head width, which bounds the scores.

    Attributes:
        q_weight: (D,), gain of each query channel after the norm.
        k_weight: (D,), the same for keys.
        eps: Added to the mean square, above 0; a zero vector stays zero.

    Raises:
        AttentionError: Gains are not floating-point, or `eps` is not a number above 0.
    """

    q_weight: Tensor
    k_weight: Tensor
    eps: float = 1e-6

    def __post_init__(self) -> None:
        for name, weight in (("q_weight", self.q_weight), ("k_weight", self.k_weight)):
            if not weight.is_floating_point():
                raise AttentionError(
                    f"expected qk_norm.{name} of a floating-point type, got {weight.dtype}"
                )
        if not (_is_finite(self.eps) and self.eps > 0):
            raise AttentionError(f"expected a finite qk_norm.eps above 0, got {self.eps!r}")


#: Types of q, k and v.
TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def accumulator_dtype(dtype: torch.dtype) -> torch.dtype:
    """Type of sums and of the log-sum-exp: float64 for float64, float32 for all narrower ones."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def expect_kinds(
    q: object, k: object, v: object, mask: object, rope: object, qk_norm: object
) -> None:
    """Refuse what is no tensor, mask, table or norm at all.

    Raises:
        AttentionError: One is of another kind; the message names it.
    """
    if (
        isinstance(q, Tensor)
        and isinstance(k, Tensor)
        and isinstance(v, Tensor)
        and isinstance(mask, Mask)
        and (rope is None or isinstance(rope, RotaryTable))
        and (qk_norm is None or isinstance(qk_norm, QkNorm))
    ):
        return
    expected: tuple[tuple[str, object, tuple[type, ...]], ...] = (
        ("q", q, (Tensor,)),
        ("k", k, (Tensor,)),
        ("v", v, (Tensor,)),
        ("mask", mask, (Mask,)),
        ("rope", rope, (RotaryTable, NoneType)),
        ("qk_norm", qk_norm, (QkNorm, NoneType)),
    )
    for name, value, kinds in expected:
        if not isinstance(value, kinds):
            words = " or ".join(kind.__name__ for kind in kinds)
            raise AttentionError(f"expected {name} of {words}, got {type(value).__name__}")


def validate(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Mask,
    rope: RotaryTable | None,
    qk_norm: QkNorm | None,
    scale: float | None,
) -> None:
    """Refuse what no backend can take, before any of them broadcasts it into something else.

    Raises:
        AttentionError: Shapes, types, devices or options do not fit together; the message says
            what was expected and what came.
    """
    shapes = f"q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}"
    if q.ndim != 4 or k.ndim != 4 or v.ndim != 4:
        raise AttentionError(f"expected q, k, v of shape (B, H, N, D), got {shapes}")
    batch, heads, n_q, width = q.shape
    n_k = k.shape[2]
    if v.shape != k.shape or (batch, heads, width) != (k.shape[0], k.shape[1], k.shape[3]):
        raise AttentionError(
            f"expected q, k, v of one batch, number of heads and head width, and k, v of one "
            f"length, got {shapes}; expand() shared heads"
        )
    if width < 1:
        raise AttentionError(f"expected a head width of at least 1, got {shapes}")
    if not (q.dtype == k.dtype == v.dtype and q.dtype in TYPES):
        raise AttentionError(
            f"expected q, k, v of one floating-point type of {', '.join(map(str, TYPES))}, got "
            f"{q.dtype}, {k.dtype}, {v.dtype}"
        )
    if not q.device == k.device == v.device:
        raise AttentionError(
            f"expected q, k, v on one device, got {q.device}, {k.device}, {v.device}"
        )
    if q.device.type == "meta":
        raise AttentionError(
            "expected q, k, v with values, got shapes alone, on meta; to_empty() and fill them"
        )
    if not q.layout == k.layout == v.layout == torch.strided:
        raise AttentionError(
            f"expected q, k, v in strides, got {q.layout}, {k.layout}, {v.layout}; to_dense() them"
        )
    largest = torch.finfo(accumulator_dtype(q.dtype)).max
    if scale is not None and not (_is_finite(scale) and abs(scale) <= largest):
        raise AttentionError(f"expected a finite scale, at most {largest:.3g}, got {scale!r}")
    if rope is not None:
        length = max(n_q, n_k)
        shapes_of_table = (length, width // 2), (batch, length, width // 2)
        for name, angles in (("cos", rope.cos), ("sin", rope.sin)):
            _expect(f"rotary table, {name},", angles, shapes_of_table, q.device)
            if not angles.is_floating_point():
                raise AttentionError(
                    f"expected rotary table, {name}, of a floating-point type, got {angles.dtype}"
                )
    _expect("mask.key_valid", mask.key_valid, ((batch, n_k),), q.device)
    _expect("mask.alibi_slopes", mask.alibi_slopes, ((heads,),), q.device)
    if qk_norm is not None:
        _expect("qk_norm.q_weight", qk_norm.q_weight, ((width,),), q.device)
        _expect("qk_norm.k_weight", qk_norm.k_weight, ((width,),), q.device)


def _is_finite(value: object) -> bool:
    """Whether it is a number, and neither NaN nor infinite; a tensor of one counts as one."""
    try:
        return math.isfinite(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False


def _expect(
    name: str, tensor: Tensor | None, shapes: tuple[tuple[int, ...], ...], device: torch.device
) -> None:
    if tensor is None or (tuple(tensor.shape) in shapes and tensor.device == device):
        return
    raise AttentionError(
        f"expected {name} of shape {' or '.join(map(str, shapes))} on {device}, "
        f"got {tuple(tensor.shape)} on {tensor.device}"
    )


def prepare(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Mask,
    rope: RotaryTable | None,
    qk_norm: QkNorm | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Clear keys that nobody sees, then norm, then turn queries and keys.

    Cleared keys come first, as zeros chosen by `where`: a NaN that is only multiplied by a weight
    of zero is still a NaN, and one that went through the norm would come back as its gradient.

    Returns:
        q, k, v in their shapes and types; v differs only where no query sees it.
    """
    seen = mask.seen_keys(q.shape[2], k.shape[2], k.device)
    if seen is not None:
        seen = seen[:, None, :, None]  # (B or 1, 1, N_k, 1)
        k, v = torch.where(seen, k, 0.0), torch.where(seen, v, 0.0)
    if qk_norm is not None:
        q = _rms_norm(q, qk_norm.q_weight, qk_norm.eps)
        k = _rms_norm(k, qk_norm.k_weight, qk_norm.eps)
    if rope is not None:
        q = apply_rotary(q, rope.last(q.shape[2]))
        k = apply_rotary(k, rope.last(k.shape[2]))
    return q, k, v


def _rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    wide = x.to(accumulator_dtype(x.dtype))
    inverse_rms = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps)
    return (wide * inverse_rms * weight).to(x.dtype)
