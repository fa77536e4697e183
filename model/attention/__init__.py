"""Attention as pure functions of one meaning, chosen by a literal dispatch table.

Axis legend: B batch, H heads, N_q queries, N_k keys, D head width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, overload

from torch import Tensor

from model.attention.inputs import QkNorm, expect_kinds, prepare, validate
from model.attention.mask import UNMASKED, Mask, TileVisibility
from model.attention.merge import merge
from model.attention.native import Answer, native_attention, quick_attention, supports
from model.attention.reference import reference_attention
from model.attention.sdpa import sdpa_attention
from model.attention.tiled import tiled_attention, visited_tiles
from model.attention.triton_kernel import supports as triton_supports
from model.attention.triton_kernel import triton_attention
from model.errors import AttentionError
from model.rotary import RotaryTable

__all__ = [
    "BACKENDS",
    "UNMASKED",
    "Mask",
    "QkNorm",
    "TileVisibility",
    "attention",
    "merge",
    "visited_tiles",
]

Kernel = Callable[[Tensor, Tensor, Tensor, Mask, float, bool], Answer]
Backend = Callable[
    [Tensor, Tensor, Tensor, Mask, RotaryTable | None, QkNorm | None, float, bool], Answer
]


def _reference(q: Tensor, k: Tensor, v: Tensor, mask: Mask, scale: float, _: bool) -> Answer:
    return reference_attention(q, k, v, mask, scale)


def _tiled(q: Tensor, k: Tensor, v: Tensor, mask: Mask, scale: float, _: bool) -> Answer:
    return tiled_attention(q, k, v, mask, scale)


def _sdpa(q: Tensor, k: Tensor, v: Tensor, mask: Mask, scale: float, return_lse: bool) -> Answer:
    # torch's function does not give its log-sum-exp away.
    if return_lse:
        return tiled_attention(q, k, v, mask, scale)
    return sdpa_attention(q, k, v, mask, scale), None


def _prepared(kernel: Kernel) -> Backend:
    """A backend whose norm and rotation torch makes beforehand."""

    def backend(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Mask,
        rope: RotaryTable | None,
        qk_norm: QkNorm | None,
        scale: float,
        return_lse: bool,
    ) -> Answer:
        return kernel(*prepare(q, k, v, mask, rope, qk_norm), mask, scale, return_lse)

    return backend


BACKENDS: Final[dict[str, Backend]] = {
    "reference": _prepared(_reference),
    "tiled": _prepared(_tiled),
    "sdpa": _prepared(_sdpa),
    "native": native_attention,
    "triton": triton_attention,
}


@overload
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Mask = ...,
    rope: RotaryTable | None = ...,
    qk_norm: QkNorm | None = ...,
    scale: float | None = ...,
    backend: str = ...,
    return_lse: Literal[False] = ...,
) -> Tensor: ...


@overload
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Mask = ...,
    rope: RotaryTable | None = ...,
    qk_norm: QkNorm | None = ...,
    scale: float | None = ...,
    backend: str = ...,
    return_lse: Literal[True],
) -> tuple[Tensor, Tensor]: ...


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Mask = UNMASKED,
    rope: RotaryTable | None = None,
    qk_norm: QkNorm | None = None,
    scale: float | None = None,
    backend: str = "auto",
    return_lse: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Weighted means of values, by the softmax of scaled scores of the visible keys.

    Keys are first cleared where nobody sees them, then queries and keys are normed (`qk_norm`),
    then turned (`rope`). Every backend gives the same answer up to rounding; see
    docs/attention.md for which one suits what.

    Args:
        q: (B, H, N_q, D), any strides, floating point.
        k: (B, H, N_k, D), same type and device.
        v: (B, H, N_k, D), same type and device.
        mask: Who sees whom. Queries are right-aligned: query i sits at position N_k - N_q + i.
        rope: Table of max(N_q, N_k) positions, right-aligned like the mask.
        qk_norm: Gains of the norm of queries and keys.
        scale: Factor of the scores, 1 / sqrt(D) by default.
        backend: A key of `BACKENDS`, or "auto": the native kernel where it can be used, on a GPU
            the triton one; else torch's where it needs no N_q x N_k array for the mask and no
            log-sum-exp is asked, and the tiled one for the rest. Naming native or triton where it
            cannot be used means "auto".
        return_lse: Also return the log-sum-exp of the visible scores, from which `merge` joins
            answers over parts of the keys. The sdpa backend then answers by the tiled one.

    Returns:
        Output (B, H, N_q, D) in the type of q, 0 in a row that sees nothing; with `return_lse`
        also (B, H, N_q), -inf in such a row, in float32 (float64 for float64).

    Raises:
        AttentionError: Shapes, types, devices or options do not fit together.
    """
    expect_kinds(q, k, v, mask, rope, qk_norm)
    if backend in ("auto", "native") and supports(q):
        answer = quick_attention(q, k, v, mask, rope, qk_norm, scale, return_lse)
        if answer is not None:
            return _asked(answer, return_lse)
    validate(q, k, v, mask, rope, qk_norm, scale)
    n_q, n_k = q.shape[2], k.shape[2]
    mask = mask.reduced(n_q, n_k)
    if backend not in ("auto", *BACKENDS):
        raise AttentionError(f"expected a backend of {['auto', *BACKENDS]}, got {backend!r}")
    unable = (backend == "native" and not supports(q)) or (
        backend == "triton" and not triton_supports(q)
    )
    if backend == "auto" or unable:
        backend = _best(q, mask.needs_matrix(n_q, n_k) or return_lse)
    scale = q.shape[3] ** -0.5 if scale is None else scale
    return _asked(BACKENDS[backend](q, k, v, mask, rope, qk_norm, scale, return_lse), return_lse)


def _asked(answer: Answer, return_lse: bool) -> Tensor | tuple[Tensor, Tensor]:
    output, lse = answer
    if not return_lse:
        return output
    assert lse is not None  # every backend gives it when asked
    return output, lse


def _best(q: Tensor, torch_needs_matrix: bool) -> str:
    if supports(q):
        return "native"
    if q.is_cuda and triton_supports(q):
        return "triton"
    return "tiled" if torch_needs_matrix else "sdpa"
