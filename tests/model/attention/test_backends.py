"""Every backend against the dense definition in float64, and the definition against plain loops."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor

from model.attention import BACKENDS, Mask, QkNorm, attention
from model.attention.reference import reference_attention
from model.attention.tiled import tiled_attention
from model.rotary import rotary_table

LENGTHS = [(1, 1), (1, 97), (97, 97), (33, 128), (200, 200), (40, 20)]
MASKS = [
    "",
    "causal",
    "window",
    "window sinks",
    "causal window",
    "causal window sinks",
    "valid",
    "valid causal",
    "valid window sinks",
    "valid causal window sinks",
    "hollow causal",
    "hollow",
    "alibi",
    "alibi causal valid",
]
TILES = {"tiles 32x32": (32, 32), "tiles 16x48": (16, 48)}
ALL_KERNELS = [*BACKENDS, *TILES]


def run(kernel: str, q: Tensor, k: Tensor, v: Tensor, mask: Mask) -> Tensor:
    if kernel not in TILES:
        return attention(q, k, v, mask=mask, backend=kernel)
    return tiled_attention(q, k, v, mask, q.shape[-1] ** -0.5, *TILES[kernel])[0]


def with_gradients(kernel, inputs, d_output, mask) -> tuple[Tensor, ...]:
    q, k, v = inputs
    output = run(kernel, q, k, v, mask)
    return output, *torch.autograd.grad(output, inputs, d_output)


def worst(actual: tuple[Tensor, ...], expected: tuple[Tensor, ...]) -> list[float]:
    pairs = zip(actual, expected, strict=True)
    return [(a.double() - e).abs().max().item() for a, e in pairs]


def upcast(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(t.detach().double().requires_grad_() for t in tensors)


def test_the_definition_agrees_with_loops_over_every_pair(draw, make_mask):
    drawn = draw(batch=2, heads=2, n_q=4, n_k=6, width=3, dtype=torch.float64)
    q, k, v = (t.detach() for t in drawn)
    mask = make_mask("alibi causal window sinks valid", 2, 2, 6)
    output, lse = attention(q, k, v, mask=mask, scale=0.7, backend="reference", return_lse=True)
    for b, h, i in [(b, h, i) for b in range(2) for h in range(2) for i in range(4)]:
        position, weights = i + 2, {}
        for j in range(6):
            near, sink = abs(position - j) < 1, j < 3
            if (near or sink) and j <= position and mask.key_valid[b, j]:
                dot = sum(float(q[b, h, i, d] * k[b, h, j, d]) for d in range(3))
                weights[j] = math.exp(0.7 * dot - 2.0 ** -(h + 1) * abs(position - j))
        total = sum(weights.values())
        for d in range(3):
            mean = sum(w * float(v[b, h, j, d]) for j, w in weights.items()) / total
            assert float(output[b, h, i, d]) == pytest.approx(mean, abs=1e-12)
        assert float(lse[b, h, i]) == pytest.approx(math.log(total), abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("words", MASKS)
@pytest.mark.parametrize(("n_q", "n_k"), LENGTHS)
def test_output_and_gradients_are_those_of_the_dense_definition(
    draw, make_mask, words, n_q, n_k, dtype
):
    output_limit, grad_limit = (2e-6, 1e-5) if dtype == torch.float32 else (1e-12, 1e-12)
    mask = make_mask(words, 2, 3, n_k)
    inputs = draw(n_q=n_q, n_k=n_k, dtype=dtype)
    d_output = draw(n_q=n_q, seed=1, dtype=dtype)[0].detach()
    expected = with_gradients("reference", upcast(inputs), d_output.double(), mask)
    for kernel in ALL_KERNELS:
        actual = with_gradients(kernel, inputs, d_output, mask)
        output_error, *grad_errors = worst(actual, expected)
        assert {t.dtype for t in actual} == {dtype}, kernel
        assert output_error <= output_limit, kernel
        assert max(grad_errors) <= grad_limit, kernel


@pytest.mark.parametrize("words", MASKS)
@pytest.mark.parametrize(("n_q", "n_k"), LENGTHS)
def test_log_sum_exp_is_that_of_the_dense_definition(draw, make_mask, words, n_q, n_k):
    mask = make_mask(words, 2, 3, n_k)
    for dtype, limit in ((torch.float32, 2e-6), (torch.float64, 1e-12)):
        inputs = draw(n_q=n_q, n_k=n_k, dtype=dtype)
        _, expected = attention(*upcast(inputs), mask=mask, backend="reference", return_lse=True)
        for backend in BACKENDS:
            output, lse = attention(*inputs, mask=mask, backend=backend, return_lse=True)
            assert lse.dtype == dtype
            torch.testing.assert_close(lse.double(), expected, rtol=0, atol=limit)
            alone = attention(*inputs, mask=mask, backend=backend)
            torch.testing.assert_close(output, alone, rtol=0, atol=limit)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("words", ["", "causal", "valid", "causal window sinks"])
@pytest.mark.parametrize("kernel", ["tiled", "sdpa", "tiles 32x32"])
def test_narrow_types_err_at_most_twice_as_much_as_dense_ones(
    draw, make_mask, kernel, words, dtype
):
    mask = make_mask(words, 2, 3, 113)
    inputs = draw(n_q=113, width=32, dtype=dtype)
    d_output = draw(n_q=113, width=32, seed=1, dtype=dtype)[0].detach()
    exact = with_gradients("reference", upcast(inputs), d_output.double(), mask)
    dense = worst(with_gradients("reference", inputs, d_output, mask), exact)
    actual = with_gradients(kernel, inputs, d_output, mask)
    assert {t.dtype for t in actual} == {dtype}
    for error, dense_error, factor in zip(worst(actual, exact), dense, (2, 3, 3, 3), strict=True):
        assert error <= factor * dense_error + 1e-5


@pytest.mark.parametrize("kernel", BACKENDS)
@pytest.mark.parametrize("words", ["", "causal", "causal window sinks", "valid", "hollow causal"])
def test_gradcheck_passes_for_output(draw, make_mask, kernel, words):
    inputs = draw(batch=2, heads=1, n_q=7, width=3, dtype=torch.float64)
    mask = make_mask(words, 2, 1, 7)
    assert torch.autograd.gradcheck(lambda q, k, v: run(kernel, q, k, v, mask), inputs)


@pytest.mark.parametrize("words", ["", "causal", "causal window sinks", "valid", "alibi"])
def test_gradcheck_passes_for_tiles_and_the_log_sum_exp(draw, make_mask, words):
    inputs = draw(batch=1, heads=1, n_q=13, width=4, dtype=torch.float64)
    mask = make_mask(words, 1, 1, 13)
    assert torch.autograd.gradcheck(
        lambda q, k, v: tiled_attention(q, k, v, mask, 0.6, tile_q=4, tile_k=5), inputs
    )


def test_gradcheck_passes_for_strided_inputs(draw):
    q, k, v = (t.transpose(1, 2) for t in draw(batch=1, heads=6, n_q=2, dtype=torch.float64))
    inputs = tuple(t.detach().requires_grad_() for t in (q, k, v))
    assert not inputs[0].is_contiguous()
    assert torch.autograd.gradcheck(
        lambda q, k, v: tiled_attention(q, k, v, Mask(causal=True), 0.6, 4, 5), inputs
    )


@pytest.mark.parametrize("kernel", ALL_KERNELS)
def test_rows_that_see_nothing_give_zeros_and_no_gradient(draw, kernel):
    q, k, v = draw(n_q=9)
    valid = torch.ones(2, 9, dtype=torch.bool)
    valid[0] = False
    valid[1, :4] = False
    for mask, blind in (
        (Mask(key_valid=valid), [(0, 9), (1, 0)]),
        (Mask(causal=True, key_valid=valid), [(0, 9), (1, 4)]),
    ):
        output, d_q, d_k, d_v = with_gradients(kernel, (q, k, v), torch.ones_like(q), mask)
        for row, count in blind:
            assert not output[row, :, :count].any()
            assert not d_q[row, :, :count].any()
            assert output[row, :, count:].all()
        assert not d_k[0].any()
        assert not d_v[0].any()
        assert not d_v[1, :, :4].any()
        assert d_v[1, :, 4:].all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_that_see_nothing_have_a_log_sum_exp_of_minus_infinity(draw, backend):
    q, k, v = draw(n_q=5, n_k=3)
    output, lse = attention(q, k, v, mask=Mask(causal=True), backend=backend, return_lse=True)
    assert (lse[:, :, :2] == -torch.inf).all()
    assert lse[:, :, 2:].isfinite().all()
    (output.sum() + lse[:, :, 2:].sum()).backward()
    assert not q.grad[:, :, :2].any()
    assert all(t.grad.isfinite().all() for t in (q, k, v))


@pytest.mark.parametrize("poison", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("backend", ["auto", *BACKENDS])
def test_nothing_of_an_invalid_key_leaks(draw, backend, poison):
    weights = torch.ones(8, requires_grad=True)
    rope, qk_norm = rotary_table(torch.arange(13), 8), QkNorm(weights, weights)
    valid = torch.ones(2, 13, dtype=torch.bool)
    valid[0, 3:6] = False
    valid[1, 12] = False
    for causal in (False, True):
        mask = Mask(causal=causal, key_valid=valid)
        results = []
        for value in (0.0, poison):
            q, k, v = (t.detach() for t in draw(n_q=13))
            hidden = ~valid[:, None, :, None]
            inputs = (q, k.masked_fill(hidden, value), v.masked_fill(hidden, value))
            inputs = tuple(t.requires_grad_() for t in inputs)
            output = attention(*inputs, mask=mask, backend=backend, rope=rope, qk_norm=qk_norm)
            grads = torch.autograd.grad(output.square().sum(), (*inputs, weights))
            results.append((output, *grads))
        for clean, poisoned in zip(*results, strict=True):
            assert torch.equal(clean, poisoned)


@pytest.mark.parametrize("backend", ["auto", *BACKENDS])
def test_nothing_leaks_from_keys_beyond_every_window(draw, backend):
    q, k, v = (t.detach() for t in draw(n_q=4, n_k=20))
    mask = Mask(causal=True, window=5, sinks=2)
    expected = attention(q, k, v, mask=mask, backend=backend)
    k[:, :, 2:12] = torch.nan
    v[:, :, 2:12] = torch.nan
    assert torch.equal(attention(q, k, v, mask=mask, backend=backend), expected)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", [(0, 2, 5, 4), (2, 0, 5, 4), (2, 2, 0, 4)])
def test_empty_batches_heads_and_sequences_give_empty_answers(backend, shape):
    q, k, v = (torch.zeros(shape, requires_grad=True) for _ in range(3))
    valid = torch.ones(shape[0], shape[2], dtype=torch.bool)
    for mask in (Mask(), Mask(causal=True), Mask(key_valid=valid), Mask(window=2)):
        output = attention(q, k, v, mask=mask, backend=backend)
        output.sum().backward()
        assert output.shape == torch.Size(shape)
        assert q.grad is not None
        assert q.grad.shape == torch.Size(shape)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("words", ["", "causal", "valid", "alibi"])
def test_without_any_key_every_row_sees_nothing(draw, make_mask, backend, words):
    q, k, v = draw(n_q=3, n_k=0)
    mask = make_mask(words, 2, 3, 0)
    output, lse = attention(q, k, v, mask=mask, backend=backend, return_lse=True)
    assert not output.any()
    assert (lse == -torch.inf).all()
    output = attention(q, k, v, mask=mask, backend=backend)
    output.sum().backward()
    assert not output.any()
    assert not q.grad.any()


@pytest.mark.parametrize("kernel", ALL_KERNELS)
@pytest.mark.parametrize("words", ["", "causal", "valid", "window"])
def test_strides_of_inputs_and_of_the_incoming_gradient_do_not_matter(
    draw, make_mask, kernel, words
):
    mask = make_mask(words, 2, 3, 40)
    dense = draw(n_q=40, width=7)
    d_output = draw(n_q=40, width=7, seed=1)[0].detach()
    expected = with_gradients(kernel, dense, d_output, mask)
    for restride in (
        lambda t: t.transpose(1, 2).contiguous().transpose(1, 2),
        lambda t: torch.stack([t, -t], dim=-1)[..., 0],
        lambda t: t.mT.contiguous().mT,
    ):
        strided = tuple(restride(t.detach()).requires_grad_() for t in dense)
        assert not strided[0].is_contiguous()
        actual = with_gradients(kernel, strided, restride(d_output), mask)
        assert max(worst(actual, upcast(expected))) <= 2e-6


@pytest.mark.parametrize("kernel", ALL_KERNELS)
def test_heads_that_share_keys_by_expansion_sum_their_gradients(draw, kernel):
    q, _, _ = draw(heads=4, n_q=21)
    _, k, v = draw(heads=1, n_q=21, seed=3)
    shared = with_gradients(
        kernel, (q, k.expand(2, 4, 21, 8), v.expand(2, 4, 21, 8)), torch.ones_like(q), Mask()
    )
    output = run(kernel, q, k.expand(2, 4, 21, 8), v.expand(2, 4, 21, 8), Mask())
    output.sum().backward()
    torch.testing.assert_close(k.grad, shared[2].sum(dim=1, keepdim=True), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kernel", ALL_KERNELS)
@pytest.mark.parametrize("width", [1, 3, 59, 111])
def test_odd_head_widths_are_exact(draw, kernel, width):
    inputs = draw(batch=1, heads=2, n_q=37, width=width)
    d_output = torch.ones_like(inputs[0])
    mask = Mask(causal=True)
    expected = with_gradients("reference", upcast(inputs), d_output.double(), mask)
    assert max(worst(with_gradients(kernel, inputs, d_output, mask), expected)) <= 1e-5


@pytest.mark.parametrize("kernel", ALL_KERNELS)
def test_the_same_call_twice_gives_the_same_bits(draw, make_mask, kernel):
    mask = make_mask("causal valid", 2, 3, 130)
    inputs = draw(n_q=130)
    first, second = (
        with_gradients(kernel, inputs, torch.ones_like(inputs[0]), mask) for _ in range(2)
    )
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("kernel", BACKENDS)
def test_one_thread_and_two_agree(draw, kernel):
    inputs = draw(n_q=130, width=32)
    d_output = torch.ones_like(inputs[0])
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            results.append(with_gradients(kernel, inputs, d_output, Mask(causal=True)))
    finally:
        torch.set_num_threads(before)
    for one, two in zip(*results, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kernel", ["auto", *ALL_KERNELS])
def test_two_threads_at_once_get_what_each_gets_alone(draw, make_mask, kernel):
    calls = [
        (draw(n_q=40 + 9 * place, seed=place), make_mask("causal valid", 2, 3, 40 + 9 * place))
        for place in range(6)
    ]

    def answer(call: tuple[tuple[Tensor, ...], Mask]) -> tuple[Tensor, ...]:
        inputs, mask = call
        return with_gradients(kernel, inputs, torch.ones_like(inputs[0]), mask)

    alone = list(map(answer, calls))
    with ThreadPoolExecutor(2) as pool:
        for _ in range(3):
            for one, together in zip(alone, pool.map(answer, calls), strict=True):
                for expected, actual in zip(one, together, strict=True):
                    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-6)


def test_reference_keeps_the_type_of_its_inputs(draw):
    q, k, v = draw(dtype=torch.bfloat16)
    output, lse = reference_attention(q, k, v, Mask(), 1.0)
    assert (output.dtype, lse.dtype) == (torch.bfloat16, torch.float32)
