"""What only the tiled kernel promises: tiles that do not matter, skipped work, bounded memory."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from model.attention import UNMASKED, Mask, visited_tiles
from model.attention.reference import reference_attention
from model.attention.tiled import DEFAULT_TILE_K, DEFAULT_TILE_Q, tiled_attention
from model.errors import AttentionError


def tiled(
    inputs: tuple[Tensor, ...],
    mask: Mask,
    tile_q: int = DEFAULT_TILE_Q,
    tile_k: int = DEFAULT_TILE_K,
) -> tuple[Tensor, Tensor]:
    q, k, v = inputs
    return tiled_attention(q, k, v, mask, 0.3, tile_q, tile_k)


class OperatorLog(TorchDispatchMode):
    """Counts batched products and fills, and remembers the largest tensor that was made."""

    def __init__(self):
        super().__init__()
        self.products = self.fills = 0
        self.largest_numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.products += func is torch.ops.aten.bmm.default
        self.fills += func is torch.ops.aten.masked_fill_.Scalar
        for tensor in result if isinstance(result, tuple | list) else (result,):
            if isinstance(tensor, Tensor):
                self.largest_numel = max(self.largest_numel, tensor.numel())
        return result


@pytest.mark.parametrize("words", ["", "causal", "causal window sinks", "hollow causal", "alibi"])
def test_tile_size_does_not_change_the_answer(draw, make_mask, words):
    n = 50
    inputs = draw(n_q=n, n_k=n + 3)
    mask = make_mask(words, 2, 3, n + 3)
    d_output = torch.ones_like(inputs[0])

    def answer(output, lse):
        finite = torch.where(lse == -torch.inf, 0.0, lse)
        grads = torch.autograd.grad((output, finite), inputs, (d_output, torch.ones_like(lse)))
        return output, lse, *grads

    q, k, v = inputs
    expected = answer(*reference_attention(q, k, v, mask, 0.3))
    sizes = (1, 7, 16, n, n + 1)
    for tile_q, tile_k in [(s, s) for s in sizes] + [(1, n + 4), (n + 1, 1), (16, 7)]:
        actual = answer(*tiled(inputs, mask, tile_q, tile_k))
        for one, other in zip(actual, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("mask", "count"),
    [
        (UNMASKED, 256),
        (Mask(causal=True), 136),
        (Mask(causal=True, window=128), 45),
        (Mask(causal=True, window=128, sinks=4), 45 + 13),
        (Mask(window=1), 16),
        (Mask(key_valid=torch.zeros(1, 1024, dtype=torch.bool)), 256),
    ],
)
def test_tiles_without_a_visible_pair_are_not_visited(mask, count):
    assert visited_tiles(1024, 1024, mask, 64, 64) == count


def test_tiles_of_unequal_lengths_are_counted_from_the_last_query():
    assert visited_tiles(1, 1024, Mask(causal=True), 64, 64) == 16
    assert visited_tiles(64, 1024, Mask(causal=True, window=64), 64, 64) == 2
    assert visited_tiles(1024, 64, Mask(causal=True), 64, 64) == 1
    assert visited_tiles(0, 64, UNMASKED) == visited_tiles(64, 0, UNMASKED) == 0


@pytest.mark.parametrize(
    ("mask", "cut"),
    [
        (UNMASKED, 0),
        (Mask(causal=True), 7),
        # The last row of tiles is short: there the tile beside the diagonal lies in the window.
        (Mask(causal=True, window=20), 7 + 5 + 5),
    ],
)
def test_the_kernel_works_on_the_counted_tiles_and_masks_only_those_that_are_cut(draw, mask, cut):
    inputs = draw(batch=1, heads=2, n_q=100)
    visited = visited_tiles(100, 100, mask, 16, 16)
    with OperatorLog() as forward:
        output, _ = tiled(inputs, mask, 16, 16)
    with OperatorLog() as backward:
        output.sum().backward()
    assert (forward.products, forward.fills) == (2 * visited, cut)
    assert (backward.products, backward.fills) == (5 * visited, cut)


@pytest.mark.parametrize("mask", [UNMASKED, Mask(causal=True, window=500)])
def test_memory_grows_with_the_length_not_with_its_square(draw, mask):
    tile_q, tile_k = 256, 512
    for n in (2048, 8192):
        inputs = draw(batch=1, heads=1, n_q=n, width=4)
        with OperatorLog() as log:
            output, lse = tiled(inputs, mask, tile_q, tile_k)
            (output.sum() + lse.sum()).backward()
        assert log.products > 0
        assert log.largest_numel <= max(4 * n, tile_q * tile_k)


def test_backward_keeps_only_inputs_output_and_log_sum_exp(draw):
    inputs = draw(n_q=40)
    kept: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output, lse = tiled(inputs, Mask(causal=True), 16, 16)
    assert [t.data_ptr() for t in kept] == [t.data_ptr() for t in (*inputs, output, lse)]


def test_peak_memory_of_a_long_sequence_is_far_below_one_square_matrix(draw):
    n, status, reset = 8192, Path("/proc/self/status"), Path("/proc/self/clear_refs")
    inputs = draw(batch=1, heads=1, n_q=n, width=8)

    def kilobytes(field: str) -> int:
        return int(status.read_text().split(f"{field}:")[1].split()[0])

    short = tuple(t[:, :, :600] for t in inputs)
    tiled(short, Mask(causal=True))[0].sum().backward()
    try:
        reset.write_text("5")
        before = kilobytes("VmRSS")
    except (OSError, IndexError):
        pytest.skip("the system does not tell the peak of resident memory")
    tiled(inputs, Mask(causal=True))[0].sum().backward()
    assert kilobytes("VmHWM") - before < n * n * 4 / 1024 / 8


@pytest.mark.parametrize("words", ["", "causal window sinks valid"])
def test_gradients_of_gradients_are_right(draw, make_mask, words):
    inputs = draw(batch=1, heads=1, n_q=6, width=2, dtype=torch.float64)
    mask = make_mask(words, 1, 1, 6)
    assert torch.autograd.gradgradcheck(lambda *qkv: tiled(qkv, mask, 3, 2), inputs)


def test_autocast_does_not_narrow_the_sums(draw):
    inputs = draw(n_q=70)
    answers = []
    for enabled in (False, True):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            output, lse = tiled(inputs, UNMASKED)
            grads = torch.autograd.grad(output.sum() + lse.sum(), inputs)
        answers.append((output, lse, *grads))
    assert all(torch.equal(plain, cast) for plain, cast in zip(*answers, strict=True))


@pytest.mark.parametrize("tiles", [(0, 16), (16, 0), (-1, 16)])
def test_tiles_without_a_side_are_refused(draw, tiles):
    with pytest.raises(AttentionError, match=f"got {tiles[0]} x {tiles[1]}"):
        tiled(draw(), UNMASKED, *tiles)


@pytest.mark.parametrize(
    "compiler", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's compiler imports torch.jit
def test_a_compiled_call_gives_the_same_answer(draw, compiler):
    mask = Mask(causal=True, window=9, sinks=2)
    inputs = draw(n_q=20)

    def answer(function):
        output, lse = function(inputs, mask, 20, 12)
        grads = torch.autograd.grad(output.square().sum() + lse.sum(), inputs)
        return output, lse, *grads

    expected = answer(tiled)
    if compiler == "inductor" and shutil.which(os.environ.get("CXX", "g++")) is None:
        pytest.skip("torch.compile needs a C++ compiler, and none is here")
    actual = answer(torch.compile(tiled, fullgraph=True, backend=compiler))
    for compiled, eager in zip(actual, expected, strict=True):
        torch.testing.assert_close(compiled, eager, rtol=0, atol=1e-5)
