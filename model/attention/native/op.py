"""The kernel as a function of the package's own values, with gradients.

Axis legend: B batch, H heads, N_q queries, N_k keys, D head width.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import forward_ad

from model.attention.inputs import QkNorm, prepare
from model.attention.mask import Mask
from model.attention.native.library import load
from model.rotary import RotaryTable

Answer = tuple[Tensor, Tensor | None]

MAX_WIDTH = 256
TYPES = frozenset({torch.float32, torch.bfloat16})


def supports(q: Tensor) -> bool:
    """Whether the kernel can answer for such queries on this machine."""
    return (
        q.dtype in TYPES
        and q.is_cpu
        and q.dim() == 4
        and q.shape[3] <= MAX_WIDTH
        and forward_ad._current_level < 0  # there are no derivatives forward
        and _usable()
    )


def _usable() -> bool:
    """Whether there is a kernel; a compiled program is of one mind about it."""
    return load().usable


# What `torch.compiler.assume_constant_result` does, without importing all of torch's compiler.
_usable._dynamo_marked_constant = True  # type: ignore[attr-defined]


def quick_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Mask,
    rope: RotaryTable | None,
    qk_norm: QkNorm | None,
    scale: float | None,
    return_lse: bool,
) -> Answer | None:
    """The answer of `native_attention` where nothing has to be checked in words or mended before.

    The kernel itself looks whether all fits together, in a tenth of the time that Python takes for
    it. None where it does not, or where a gradient is asked.
    """
    # A compiler does not let an error be caught, so what it traces is checked beforehand.
    if torch.compiler.is_compiling() or _learns(q, k, v, rope, qk_norm):
        return None
    try:
        output, lse = torch.ops.rancast.attention(
            q,
            k,
            v,
            mask.key_valid,
            mask.alibi_slopes,
            qk_norm and qk_norm.q_weight,
            qk_norm and qk_norm.k_weight,
            rope and rope.cos,
            rope and rope.sin,
            qk_norm.eps if qk_norm else 0.0,
            scale,
            mask.causal,
            mask.window or 0,
            mask.sinks,
            return_lse,
        )
    except RuntimeError:
        return None
    return output, lse if return_lse else None


def native_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Mask,
    rope: RotaryTable | None,
    qk_norm: QkNorm | None,
    scale: float,
    return_lse: bool,
) -> Answer:
    """The reference's result, exactly but for rounding, in O(N) memory.

    Where a gradient is asked, norm and rotation are made by torch, so that theirs is too.

    Args:
        q: (B, H, N_q, D), any strides.
        k: (B, H, N_k, D).
        v: (B, H, N_k, D).
        mask: Who sees whom.
        rope: Rotary table, right-aligned.
        qk_norm: Gains of the norm of queries and keys.
        scale: Factor of the scores.
        return_lse: Also give the log-sum-exp.

    Returns:
        Output (B, H, N_q, D) in the type of q, dense as (B, N_q, H, D), and the log-sum-exp
        (B, H, N_q) in float32.
    """
    learns = _learns(q, k, v, rope, qk_norm)
    if learns and (rope is not None or qk_norm is not None):
        q, k, v = prepare(q, k, v, mask, rope, qk_norm)
        rope = qk_norm = None
    output, lse = torch.ops.rancast.attention(
        _dense_rows(q),
        _dense_rows(k),
        _dense_rows(v),
        None if mask.key_valid is None else mask.key_valid.contiguous(),
        _plain(mask.alibi_slopes),
        None if qk_norm is None else _plain(qk_norm.q_weight),
        None if qk_norm is None else _plain(qk_norm.k_weight),
        None if rope is None else _plain(rope.cos),
        None if rope is None else _plain(rope.sin),
        0.0 if qk_norm is None else qk_norm.eps,
        scale,
        mask.causal,
        mask.window or 0,
        mask.sinks,
        learns or return_lse,
    )
    return output, lse if return_lse else None


def _learns(
    q: Tensor, k: Tensor, v: Tensor, rope: RotaryTable | None, qk_norm: QkNorm | None
) -> bool:
    if not torch.is_grad_enabled():
        return False
    if q.requires_grad or k.requires_grad or v.requires_grad:
        return True
    if qk_norm is not None and (qk_norm.q_weight.requires_grad or qk_norm.k_weight.requires_grad):
        return True
    return rope is not None and (rope.cos.requires_grad or rope.sin.requires_grad)


def _dense_rows(x: Tensor) -> Tensor:
    return x if x.stride(-1) == 1 or x.shape[-1] == 1 else x.contiguous()


def _plain(x: Tensor | None) -> Tensor | None:
    return None if x is None else x.detach().to(torch.float32).contiguous()
