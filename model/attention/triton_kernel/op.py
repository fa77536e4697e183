"""The kernels as operators of torch: shapes of their results, and their gradient.

A compiler of torch sees an operator as one step that it does not look into, so compiled and
exported programs run the same kernels. Importing this module registers them.

Axis legend: B batch, H heads, N_q queries, N_k keys, D head width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from model.attention.triton_kernel.backward import run_backward
from model.attention.triton_kernel.forward import run_forward
from model.attention.triton_kernel.tiles import Tiles, choose
from model.attention.triton_kernel.toolchain import load
from model.errors import AttentionError

_SCHEMA = (
    "(Tensor q, Tensor k, Tensor v, Tensor? key_valid, Tensor? alibi_slopes, float scale, "
    "bool causal, int window, int sinks, int tile_q, int tile_k) -> (Tensor, Tensor)"
)
_BACKWARD_SCHEMA = (
    "(Tensor q, Tensor k, Tensor v, Tensor output, Tensor lse, Tensor d_output, Tensor d_lse, "
    "Tensor? key_valid, Tensor? alibi_slopes, float scale, bool causal, int window, int sinks, "
    "int tile_q, int tile_k) -> (Tensor, Tensor, Tensor)"
)


def _forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_valid: Tensor | None,
    alibi_slopes: Tensor | None,
    scale: float,
    causal: bool,
    window: int,
    sinks: int,
    tile_q: int,
    tile_k: int,
) -> tuple[Tensor, Tensor]:
    output, lse = _empty(q)
    if output.numel():
        tiles = _tiles(q, k, tile_q, tile_k, backward=False)
        terms = (scale, causal, window, sinks, tiles, _widens(q))
        run_forward(q, k, v, _bytes(key_valid), alibi_slopes, output, lse, *terms)
    return output, lse


def _backward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    output: Tensor,
    lse: Tensor,
    d_output: Tensor,
    d_lse: Tensor,
    key_valid: Tensor | None,
    alibi_slopes: Tensor | None,
    scale: float,
    causal: bool,
    window: int,
    sinks: int,
    tile_q: int,
    tile_k: int,
) -> tuple[Tensor, Tensor, Tensor]:
    d_q, d_k, d_v = (_tokens(x) for x in (q, k, v))
    if not q.numel():
        return d_q, d_k.zero_(), d_v.zero_()
    tiles = _tiles(q, k, tile_q, tile_k, backward=True)
    terms = (scale, causal, window, sinks, tiles, _widens(q))
    run_backward(
        q, k, v, _bytes(key_valid), alibi_slopes, output, lse, d_output, d_lse.contiguous(),
        d_q, d_k, d_v, *terms,
    )  # fmt: skip
    return d_q, d_k, d_v


def _tokens(like: Tensor) -> Tensor:
    """Room for (B, H, N, D), dense as (B, N, H, D), the layout of a projection."""
    batch, heads, rows, width = like.shape
    return like.new_empty((batch, rows, heads, width)).transpose(1, 2)


def _empty(q: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return _tokens(q), q.new_empty(q.shape[:3], dtype=torch.float32)


def _empty_gradients(q: Tensor, k: Tensor, v: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    return _tokens(q), _tokens(k), _tokens(v)


def _tiles(q: Tensor, k: Tensor, tile_q: int, tile_k: int, backward: bool) -> Tiles:
    if tile_q and tile_k:
        return Tiles(tile_q, tile_k)
    return choose(q.shape[3], q.element_size(), q.shape[2], k.shape[2], backward)


def _widens(q: Tensor) -> bool:
    return q.dtype == torch.bfloat16 and load().interpreted


def _bytes(key_valid: Tensor | None) -> Tensor | None:
    return None if key_valid is None else key_valid.view(torch.uint8)


def _save_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    q, k, v, key_valid, slopes, *terms = inputs
    ctx.save_for_backward(q, k, v, *output, key_valid, slopes)
    ctx.terms = terms


def _differentiate(ctx: Any, d_output: Tensor, d_lse: Tensor) -> tuple[Tensor | None, ...]:
    q, k, v, output, lse, key_valid, slopes = ctx.saved_tensors
    grads = torch.ops.rancast.triton_attention_backward(
        q, k, v, output, lse, d_output, d_lse, key_valid, slopes, *ctx.terms
    )
    return (*grads, *(None for _ in range(8)))


def _refuse(_: Any, *__: Tensor) -> None:
    raise AttentionError(
        "expected a first derivative of attention, got one of higher order, which the triton "
        "backend has not; ask with backend='tiled'"
    )


_attention = torch.library.custom_op(
    "rancast::triton_attention", _forward, mutates_args=(), schema=_SCHEMA
)
_attention.register_fake(_empty)
_attention.register_autograd(_differentiate, setup_context=_save_for_backward)
_gradient = torch.library.custom_op(
    "rancast::triton_attention_backward", _backward, mutates_args=(), schema=_BACKWARD_SCHEMA
)
_gradient.register_fake(_empty_gradients)
_gradient.register_autograd(_refuse)
