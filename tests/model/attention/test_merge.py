from __future__ import annotations

import pytest
import torch

from model.attention import BACKENDS, Mask, attention, merge


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("cut", [0, 1, 40, 96, 97])
def test_merging_two_halves_gives_the_whole(draw, backend, cut):
    q, k, v = draw(n_q=33, n_k=97)
    whole = attention(q, k, v, backend=backend, return_lse=True)
    halves = [
        attention(q, k[:, :, part], v[:, :, part], backend=backend, return_lse=True)
        for part in (slice(None, cut), slice(cut, None))
    ]
    merged = merge(*halves[0], *halves[1])
    for part, expected in zip(merged, whole, strict=True):
        torch.testing.assert_close(part, expected, rtol=0, atol=2e-6)
    grads, expected_grads = (
        torch.autograd.grad(o.square().sum() + lse.sum(), (q, k, v)) for o, lse in (merged, whole)
    )
    for grad, expected in zip(grads, expected_grads, strict=True):
        torch.testing.assert_close(grad, expected, rtol=0, atol=1e-5)


def test_halves_under_a_causal_mask_merge_where_each_hides_the_other(draw):
    q, k, v = draw(n_q=20)
    first = torch.arange(20).expand(2, 20) < 9
    whole = attention(q, k, v, mask=Mask(causal=True), return_lse=True)
    halves = [
        attention(q, k, v, mask=Mask(causal=True, key_valid=part), return_lse=True)
        for part in (first, ~first)
    ]
    merged = merge(*halves[0], *halves[1])
    for part, expected in zip(merged, whole, strict=True):
        torch.testing.assert_close(part, expected, rtol=0, atol=2e-6)


def test_three_parts_merge_in_any_order(draw):
    q, k, v = draw(n_q=5, n_k=30, dtype=torch.float64)
    a, b, c = (
        attention(q, k[:, :, s], v[:, :, s], return_lse=True)
        for s in (slice(0, 4), slice(4, 19), slice(19, 30))
    )
    left, right = merge(*merge(*a, *b), *c), merge(*a, *merge(*c, *b))
    for one, other in zip(left, right, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-14)


def test_two_empty_halves_are_empty_and_pass_no_gradient(draw):
    q, k, v = draw(n_q=3)
    mask = Mask(key_valid=torch.zeros(2, 3, dtype=torch.bool))
    half = attention(q, k, v, mask=mask, return_lse=True)
    output, lse = merge(*half, *half)
    assert not output.any()
    assert (lse == -torch.inf).all()
    output.sum().backward()
    assert not any(t.grad.any() for t in (q, k, v))


def test_huge_scores_merge_without_overflow():
    output, lse = merge(
        torch.ones(1, 1, 1, 2),
        torch.full((1, 1, 1), 1e30),
        torch.zeros(1, 1, 1, 2),
        torch.zeros(1, 1, 1),
    )
    assert output.tolist() == [[[[1.0, 1.0]]]]
    assert lse.item() == pytest.approx(1e30)


def test_narrow_halves_stay_narrow(draw):
    q, k, v = draw(dtype=torch.bfloat16)
    half = attention(q, k, v, return_lse=True)
    output, lse = merge(*half, *half)
    assert (output.dtype, lse.dtype) == (torch.bfloat16, torch.float32)
