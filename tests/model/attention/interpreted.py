"""Checks of the triton kernel, run in a process in which Triton interprets it on the CPU."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from unittest import mock

import pytest
import torch
from torch import Tensor

from model.attention import Mask, attention, visited_tiles
from model.attention.triton_kernel import load, triton_attention
from model.attention.triton_kernel.tiles import Tiles
from model.errors import AttentionError
from tests.model.attention import sweep

SIDE = 16  # of a tile: the smallest that can be multiplied
SMALL = mock.patch("model.attention.triton_kernel.op.choose", return_value=Tiles(SIDE, SIDE))


def in_small_tiles(inputs: Sequence[Tensor], mask: Mask) -> tuple[Tensor, Tensor]:
    q, k, v = inputs
    return triton_attention(q, k, v, mask, None, None, 0.3, tile_q=SIDE, tile_k=SIDE)


def draw(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(dtype)


def what_runs() -> str:
    return load().reason


def gives_what_the_definition_gives(
    shape: tuple[int, ...], dtype: torch.dtype, first: int, step: int
) -> None:
    with SMALL:
        sweep.check(shape, dtype, "triton", first=first, step=step)


def works_on_visible_tiles_only(mask: Mask, n_q: int, n_k: int) -> None:
    """Products are counted: 2 a tile forward, 3 and 4 in the two kernels of the gradients."""
    from triton.runtime.interpreter import InterpreterBuilder

    q, k, v = draw(1, 1, n_q, 8), draw(1, 1, n_k, 8), draw(1, 1, n_k, 8)
    expected = visited_tiles(n_q, n_k, mask, SIDE, SIDE)
    with mock.patch.object(
        InterpreterBuilder, "create_dot", autospec=True, side_effect=InterpreterBuilder.create_dot
    ) as products:
        output, _ = in_small_tiles([t.requires_grad_() for t in (q, k, v)], mask)
        assert products.call_count == 2 * expected
        products.reset_mock()
        output.sum().backward()
        assert products.call_count == 7 * expected


def blind_rows_give_nothing() -> None:
    valid = torch.ones(2, 20, dtype=torch.bool)
    valid[0] = False
    valid[1, :4] = False
    q, k, v = (draw(2, 1, 20, 8, seed=seed).requires_grad_() for seed in range(3))
    output, lse = in_small_tiles((q, k, v), Mask(causal=True, key_valid=valid))
    for row, count in ((0, 20), (1, 4)):
        assert not output[row, :, :count].any()
        assert (lse[row, :, :count] == -torch.inf).all()
    d_output = torch.ones_like(output)
    d_output[0] = d_output[1, :, :4] = torch.nan  # whatever is made of rows that say nothing
    grads = torch.autograd.grad((output, lse), (q, k, v), (d_output, d_output[..., 0]))
    assert all(grad.isfinite().all() for grad in grads)
    assert not grads[0][0].any()
    assert not grads[0][1, :, :4].any()
    assert grads[2][1, :, 4:].all()


def nothing_hidden_leaks(mask: Mask, hidden: Tensor, poison: float) -> None:
    """`hidden` (N_k,) are keys that none of the 10 last queries sees."""
    found = []
    for value in (0.0, poison):
        q, k, v = draw(1, 2, 10, 8), draw(1, 2, 40, 8, seed=1), draw(1, 2, 40, 8, seed=2)
        k[:, :, hidden] = v[:, :, hidden] = value
        leaves = [t.requires_grad_() for t in (q, k, v)]
        output, lse = in_small_tiles(leaves, mask)
        grads = torch.autograd.grad(output.square().sum() + lse.sum(), leaves)
        found.append((output, lse, *grads))
    assert not found[1][3][:, :, hidden].any()
    assert all(torch.equal(clean, poisoned) for clean, poisoned in zip(*found, strict=True))


def same_call_gives_the_same_bits() -> None:
    leaves = [draw(1, 2, 40, 8, seed=seed).requires_grad_() for seed in range(3)]
    found = []
    for _ in range(2):
        output, lse = in_small_tiles(leaves, Mask(causal=True))
        found.append((output, lse, *torch.autograd.grad(output.square().sum(), leaves)))
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def strides_do_not_matter() -> None:
    dense = [draw(2, 2, 20, 7, seed=seed) for seed in range(4)]
    found = []
    for restride in (
        lambda t: t,
        lambda t: t.transpose(1, 2).contiguous().transpose(1, 2),
        lambda t: torch.stack([t, -t], dim=-1)[..., 0],
        lambda t: t.mT.contiguous().mT,
    ):
        *leaves, d_output = (restride(t) for t in dense)
        leaves = [t.detach().requires_grad_() for t in leaves]
        output, _ = in_small_tiles(leaves, Mask(window=5))
        found.append((output, *torch.autograd.grad(output, leaves, d_output)))
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))
    assert found[0][0].transpose(1, 2).is_contiguous()  # the layout of a projection


def shared_heads_sum_their_gradients() -> None:
    q, k = draw(1, 3, 20, 8), draw(1, 1, 20, 8, seed=1).requires_grad_()
    grads = []
    for keys in (k.expand(1, 3, 20, 8), k.repeat(1, 3, 1, 1)):
        output, _ = in_small_tiles((q, keys, keys), Mask())
        grads.append(torch.autograd.grad(output.square().sum(), k)[0])
    torch.testing.assert_close(*grads, rtol=0, atol=1e-6)


def nothing_gives_nothing() -> None:
    for shape in ((0, 2, 5, 8), (2, 0, 5, 8), (2, 2, 0, 8)):
        q = torch.zeros(shape, requires_grad=True)
        output, lse = attention(q, q, q, backend="triton", return_lse=True)
        (output.sum() + lse.sum()).backward()
        assert (output.shape, lse.shape) == (shape, shape[:3])
        assert q.grad is not None
    q, k = draw(1, 2, 3, 8).requires_grad_(), torch.zeros(1, 2, 0, 8, requires_grad=True)
    output, lse = attention(q, k, k, backend="triton", return_lse=True)
    output.sum().backward()
    assert not output.any()
    assert (lse == -torch.inf).all()
    assert q.grad is not None
    assert not q.grad.any()


def huge_scores_stay_finite() -> None:
    leaves = [draw(1, 1, 20, 8, seed=seed).requires_grad_() for seed in range(3)]
    output = attention(*leaves, mask=Mask(causal=True), scale=1e6, backend="triton")
    output.sum().backward()
    assert output.isfinite().all()
    assert all(leaf.grad is not None and leaf.grad.isfinite().all() for leaf in leaves)


def second_derivative_is_refused() -> None:
    leaf = draw(1, 1, 5, 8).requires_grad_()
    output = attention(leaf, leaf, leaf, backend="triton")
    (gradient,) = torch.autograd.grad(output.square().sum(), leaf, create_graph=True)
    with pytest.raises(AttentionError, match="backend='tiled'"):
        torch.autograd.grad(gradient.square().sum(), leaf)


def torch_finds_nothing_wrong_with_the_operator() -> None:
    q, k, v = (draw(1, 1, 9, 8, seed=seed).requires_grad_() for seed in range(3))
    valid = torch.ones(1, 9, dtype=torch.bool)
    torch.library.opcheck(
        torch.ops.rancast.triton_attention,
        (q, k, v, valid, None, 0.3, True, 4, 1, 0, 0),
        test_utils=("test_schema", "test_autograd_registration", "test_faketensor"),
    )


def compiler_sees_through_it() -> None:
    leaves = [draw(1, 1, 20, 8, seed=seed).requires_grad_() for seed in range(3)]

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attention(q, k, v, mask=Mask(causal=True), backend="triton")

    found = []
    for function in (attend, torch.compile(attend, backend="aot_eager", fullgraph=True)):
        output = function(*leaves)
        found.append((output, *torch.autograd.grad(output.square().sum(), leaves)))
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def named_kernel_is_the_one_that_runs() -> None:
    with mock.patch("model.attention.triton_kernel.op.run_forward") as kernel:
        for options in itertools.product((torch.float64, torch.float32), (8, 257)):
            q = torch.zeros(1, 1, 3, options[1], dtype=options[0])
            attention(q, q, q, backend="triton")
    assert kernel.call_count == 1  # of float32 in a width of 8
