"""What torch has to know of the operator beside its code: shapes of its results, and its gradient.

Axis legend: B batch, H heads, N_q queries, N_k keys, D head width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from model.errors import AttentionError


def register() -> None:
    """Tell torch, once a library is loaded."""
    torch.library.register_fake("rancast::attention", _fake)
    torch.library.register_fake("rancast::attention_backward", _fake_backward)
    torch.library.register_autograd(
        "rancast::attention", _backward, setup_context=_save_for_backward
    )
    torch.library.register_autograd("rancast::attention_backward", _refuse)


def _tokens(like: Tensor) -> Tensor:
    batch, heads, rows, width = like.shape
    return like.new_empty((batch, rows, heads, width)).transpose(1, 2)


def _fake(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_valid: Tensor | None,
    alibi_slopes: Tensor | None,
    *preparation_and_terms: Any,
) -> tuple[Tensor, Tensor]:
    """Shapes of the results; refuses what the kernel would, so that a traced call is mended too."""
    batch, heads, rows, _ = q.shape
    narrow = [x for x in (alibi_slopes, *preparation_and_terms[:4]) if x is not None]
    valid = [] if key_valid is None else [key_valid]
    if any(x.device != q.device for x in (k, v, *valid, *narrow)):
        raise RuntimeError("expected one device")
    if any(x.dtype != torch.float32 or not x.is_contiguous() for x in narrow):
        raise RuntimeError("expected slopes, gains and angles as dense float32")
    if any(x.stride(-1) != 1 and x.shape[-1] != 1 for x in (q, k, v)) or not all(
        x.is_contiguous() for x in valid
    ):
        raise RuntimeError("expected dense rows")
    with_lse = preparation_and_terms[-1]
    return _tokens(q), q.new_empty((batch if with_lse else 0, heads, rows), dtype=torch.float32)


def _fake_backward(q: Tensor, k: Tensor, v: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    return _tokens(q), _tokens(k), _tokens(v)


def _save_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    q, k, v, key_valid, slopes, *preparation, _, scale, causal, window, sinks, with_lse = inputs
    ctx.is_complete = with_lse and all(x is None for x in preparation)
    ctx.save_for_backward(q, k, v, *output, key_valid, slopes)
    ctx.terms = (scale, causal, window, sinks)


def _refuse(_: Any, *__: Tensor) -> None:
    raise AttentionError(
        "expected a first derivative of attention, got one of higher order, which the native "
        "backend has not; ask with backend='tiled'"
    )


def _backward(ctx: Any, d_output: Tensor, d_lse: Tensor | None) -> tuple[Tensor | None, ...]:
    q, k, v, output, lse, key_valid, slopes = ctx.saved_tensors
    if not ctx.is_complete:
        raise AttentionError(
            "expected gradients to be asked when attention is called, got a program that was "
            "traced without them; trace it with inputs that require gradients"
        )
    grads = torch.ops.rancast.attention_backward(
        q,
        k,
        v,
        output,
        lse,
        d_output if d_output.stride(-1) == 1 else d_output.contiguous(),
        None if d_lse is None else d_lse.contiguous(),
        key_valid,
        slopes,
        *ctx.terms,
    )
    return (*grads, *(None for _ in range(12)))
