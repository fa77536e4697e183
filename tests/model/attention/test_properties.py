"""Mathematical facts of attention, over drawn shapes and for every backend."""

from __future__ import annotations

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from model.attention import BACKENDS, UNMASKED, Mask, attention

pytestmark = pytest.mark.parametrize("backend", BACKENDS)

counts = st.integers(1, 3)
lengths = st.integers(1, 40)
widths = st.integers(1, 9)
seeds = st.integers(0, 10_000)
shapes = st.tuples(counts, counts, lengths, widths)
some_examples = settings(max_examples=12, deadline=None)


def draw_three(shape, seed, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator, dtype=dtype) for _ in range(3)]


def draw_mask(shape, seed, causal, window) -> Mask:
    """A mask that leaves every query its own key at least."""
    slopes = torch.rand(shape[1], generator=torch.Generator().manual_seed(seed))
    return Mask(causal, window, sinks=seed % 3 if window else 0, alibi_slopes=slopes)


@given(shape=shapes, seed=seeds, causal=st.booleans(), window=st.none() | st.integers(1, 20))
@some_examples
def test_rows_of_weights_sum_to_one(backend, shape, seed, causal, window):
    q, k, v = draw_three(shape, seed)
    mask = draw_mask(shape, seed, causal, window)
    output = attention(q, k, torch.ones_like(v), mask=mask, backend=backend)
    torch.testing.assert_close(output, torch.ones_like(output), rtol=0, atol=1e-6)


@given(shape=shapes, seed=seeds, causal=st.booleans(), window=st.none() | st.integers(1, 20))
@some_examples
def test_outputs_lie_within_the_range_of_the_values(backend, shape, seed, causal, window):
    q, k, v = draw_three(shape, seed)
    mask = draw_mask(shape, seed, causal, window)
    output = attention(q, k, v, mask=mask, backend=backend)
    assert (output <= v.amax(dim=2, keepdim=True) + 1e-6).all()
    assert (output >= v.amin(dim=2, keepdim=True) - 1e-6).all()


@given(shape=shapes, seed=seeds)
@some_examples
def test_permuting_all_tokens_permutes_the_output(backend, shape, seed):
    q, k, v = draw_three(shape, seed, torch.float64)
    valid = torch.rand(shape[0], shape[2], generator=torch.Generator().manual_seed(seed)) < 0.7
    order = torch.randperm(shape[2], generator=torch.Generator().manual_seed(seed))
    output = attention(q, k, v, mask=Mask(key_valid=valid), backend=backend)
    permuted = attention(
        q[:, :, order],
        k[:, :, order],
        v[:, :, order],
        mask=Mask(key_valid=valid[:, order]),
        backend=backend,
    )
    torch.testing.assert_close(permuted, output[:, :, order], rtol=0, atol=1e-12)


@given(shape=shapes, seed=seeds)
@some_examples
def test_the_order_of_keys_with_their_values_does_not_matter(backend, shape, seed):
    q, k, v = draw_three(shape, seed, torch.float64)
    order = torch.randperm(shape[2], generator=torch.Generator().manual_seed(seed))
    output = attention(q, k, v, backend=backend)
    shuffled = attention(q, k[:, :, order], v[:, :, order], backend=backend)
    torch.testing.assert_close(shuffled, output, rtol=0, atol=1e-12)


@given(shape=shapes, seed=seeds)
@some_examples
def test_infinite_temperature_gives_the_mean_of_the_values(backend, shape, seed):
    q, k, v = draw_three(shape, seed)
    mean = v.mean(dim=2, keepdim=True).expand_as(v)
    for scale in (0.0, 1e-9, -1e-9):
        output = attention(q, k, v, scale=scale, backend=backend)
        torch.testing.assert_close(output, mean, rtol=0, atol=1e-6)


@given(shape=shapes, seed=seeds)
@some_examples
def test_zero_temperature_looks_up_the_value_of_the_best_key(backend, shape, seed):
    q, k, v = draw_three(shape, seed, torch.float64)
    scores = q @ k.mT
    if shape[2] > 1:
        best, second = scores.topk(2, dim=-1).values.unbind(-1)
        assume(((best - second) > 1e-5).all())
    looked_up = torch.take_along_dim(v, scores.argmax(dim=-1, keepdim=True), dim=2)
    output = attention(q, k, v, scale=1e9, backend=backend)
    torch.testing.assert_close(output, looked_up, rtol=0, atol=1e-12)


@given(shape=shapes, seed=seeds)
@some_examples
def test_one_token_is_the_identity_on_values(backend, shape, seed):
    q, k, v = draw_three((*shape[:2], 1, shape[3]), seed)
    for mask in (UNMASKED, Mask(causal=True, window=1)):
        assert torch.equal(attention(q, k, v, mask=mask, backend=backend), v)


@given(shape=shapes, seed=seeds, constant=st.floats(-30, 30))
@some_examples
def test_a_constant_added_to_all_scores_changes_nothing_but_the_log_sum_exp(
    backend, shape, seed, constant
):
    q, k, v = draw_three(shape, seed, torch.float64)
    raised_q = torch.cat([q, torch.ones_like(q[..., :1])], dim=-1)
    raised_k = torch.cat([k, torch.full_like(k[..., :1], constant)], dim=-1)
    wide_v = torch.cat([v, torch.zeros_like(v[..., :1])], dim=-1)
    output, lse = attention(q, k, v, scale=1.0, backend=backend, return_lse=True)
    raised, raised_lse = attention(
        raised_q, raised_k, wide_v, scale=1.0, backend=backend, return_lse=True
    )
    torch.testing.assert_close(raised[..., :-1], output, rtol=0, atol=1e-11)
    torch.testing.assert_close(raised_lse, lse + constant, rtol=0, atol=1e-11)


@given(shape=shapes, seed=seeds, causal=st.booleans())
@some_examples
def test_huge_scores_stay_finite_forward_and_backward(backend, shape, seed, causal):
    inputs = [t.requires_grad_() for t in draw_three(shape, seed)]
    output = attention(*inputs, mask=Mask(causal=causal), scale=1e6, backend=backend)
    output.sum().backward()
    assert output.isfinite().all()
    assert all(t.grad.isfinite().all() for t in inputs)


@given(shape=shapes, seed=seeds)
@some_examples
def test_an_answer_does_not_depend_on_what_else_is_in_the_batch(backend, shape, seed):
    q, k, v = draw_three(shape, seed, torch.float64)
    valid = torch.rand(shape[0], shape[2], generator=torch.Generator().manual_seed(seed)) < 0.7
    together = attention(q, k, v, mask=Mask(key_valid=valid), backend=backend)
    for row in range(shape[0]):
        one = slice(row, row + 1)
        alone = attention(q[one], k[one], v[one], mask=Mask(key_valid=valid[one]), backend=backend)
        torch.testing.assert_close(alone, together[one], rtol=0, atol=1e-12)


@given(shape=shapes, seed=seeds)
@some_examples
def test_an_invalid_key_is_the_same_as_an_absent_one(backend, shape, seed):
    q, k, v = draw_three(shape, seed, torch.float64)
    valid = torch.rand(shape[2], generator=torch.Generator().manual_seed(seed)) < 0.6
    masked = attention(q, k, v, mask=Mask(key_valid=valid.expand(shape[0], -1)), backend=backend)
    absent = attention(q, k[:, :, valid], v[:, :, valid], backend=backend)
    torch.testing.assert_close(masked, absent, rtol=0, atol=1e-12)
