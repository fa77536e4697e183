from __future__ import annotations

from unittest import mock

import pytest
import torch

import model.attention
from model.attention import BACKENDS, Mask, attention

VALID = torch.ones(2, 13, dtype=torch.bool)


@pytest.fixture
def chosen(monkeypatch) -> list[str]:
    """Names of the backends in the order in which they were called."""
    names: list[str] = []

    def record(name, backend):
        def recorded(*args):
            names.append(name)
            return backend(*args)

        return recorded

    for name, backend in dict(BACKENDS).items():
        monkeypatch.setitem(BACKENDS, name, record(name, backend))
    return names


@pytest.fixture
def without_native(monkeypatch):
    """A machine whose processor or compiler the native kernel cannot use."""
    monkeypatch.setattr("model.attention.supports", lambda _: False)


@pytest.fixture
def torch_calls(monkeypatch) -> list[dict]:
    """Keyword arguments of every call of torch's own kernel."""
    calls: list[dict] = []
    kernel = torch.nn.functional.scaled_dot_product_attention

    def recorded(*args, **options):
        calls.append(options)
        return kernel(*args, **options)

    monkeypatch.setattr("model.attention.sdpa.scaled_dot_product_attention", recorded)
    return calls


@pytest.mark.parametrize(
    ("mask", "n_q", "backend"),
    [
        (Mask(), 13, "sdpa"),
        (Mask(causal=True), 13, "sdpa"),
        (Mask(key_valid=VALID), 13, "sdpa"),
        (Mask(key_valid=VALID), 4, "sdpa"),
        (Mask(causal=True), 1, "sdpa"),
        (Mask(causal=True, key_valid=VALID), 1, "sdpa"),
        (Mask(window=13), 13, "sdpa"),
        (Mask(causal=True), 4, "tiled"),
        (Mask(causal=True, key_valid=VALID), 13, "tiled"),
        (Mask(window=12), 13, "tiled"),
        (Mask(alibi_slopes=torch.ones(3)), 13, "tiled"),
    ],
)
@pytest.mark.usefixtures("without_native")
def test_auto_leaves_to_torch_what_needs_no_matrix(draw, chosen, mask, n_q, backend):
    q, k, v = draw(n_q=n_q, n_k=13)
    attention(q, k, v, mask=mask)
    assert chosen == [backend]


@pytest.mark.usefixtures("without_native")
def test_auto_answers_by_tiles_where_the_log_sum_exp_is_asked(draw, chosen):
    attention(*draw(), return_lse=True)
    assert chosen == ["tiled"]


@pytest.mark.usefixtures("native_kernel")
@pytest.mark.parametrize("return_lse", [False, True])
@pytest.mark.parametrize("mask", [Mask(), Mask(window=3), Mask(causal=True, key_valid=VALID)])
def test_auto_takes_the_native_kernel_where_it_can_be_used(draw, chosen, mask, return_lse):
    attention(*draw(), mask=mask, return_lse=return_lse)
    assert chosen == ["native"]


@pytest.mark.parametrize(
    "options", [{"dtype": torch.float64}, {"dtype": torch.float16}, {"width": 257}]
)
def test_what_the_native_kernel_cannot_take_is_answered_by_another(draw, chosen, options):
    attention(*draw(**options), backend="native")
    assert chosen == ["sdpa"]


@pytest.mark.usefixtures("native_kernel")
@pytest.mark.parametrize("name", [name for name in BACKENDS if name != "triton"])
def test_a_named_backend_is_the_one_that_runs(draw, chosen, name):
    attention(*draw(), mask=Mask(window=3), backend=name)
    assert chosen == [name]


@pytest.mark.usefixtures("native_kernel")
def test_tensors_of_a_cpu_are_answered_by_its_best_kernel_where_triton_is_named(draw, chosen):
    attention(*draw(), backend="triton")
    assert chosen == ["native"]


def test_auto_takes_triton_for_tensors_of_a_gpu(monkeypatch):
    on_gpu = mock.Mock(spec=torch.Tensor, is_cuda=True)
    monkeypatch.setattr("model.attention.supports", lambda _: False)
    for usable, name in ((True, "triton"), (False, "tiled")):
        monkeypatch.setattr("model.attention.triton_supports", lambda _, usable=usable: usable)
        assert model.attention._best(on_gpu, torch_needs_matrix=True) == name


def test_without_a_mask_torch_is_given_none(draw, torch_calls):
    attention(*draw(width=4), backend="sdpa")
    assert torch_calls == [{"is_causal": False, "scale": 0.5}]


def test_causal_is_told_to_torch_in_a_word(draw, torch_calls):
    attention(*draw(), mask=Mask(causal=True), scale=2.0, backend="sdpa")
    assert torch_calls == [{"is_causal": True, "scale": 2.0}]


def test_key_validity_reaches_torch_as_one_row_a_batch_member(draw, torch_calls):
    attention(*draw(), mask=Mask(key_valid=VALID), backend="sdpa")
    (options,) = torch_calls
    assert options["attn_mask"].shape == (2, 1, 1, 13)


@pytest.mark.parametrize(
    "mask",
    [
        Mask(key_valid=torch.tensor([[False] * 13, [True] * 13])),
        Mask(causal=True, key_valid=torch.arange(13).expand(2, 13) > 4),
        Mask(causal=True, key_valid=torch.arange(13).expand(2, 13) > 4, alibi_slopes=torch.ones(3)),
    ],
)
def test_rows_that_see_nothing_are_zero_even_where_torchs_kernel_would_say_nan(
    draw, monkeypatch, mask
):
    def plain(q, k, v, attn_mask, scale):
        if attn_mask.dtype == torch.bool:
            attn_mask = torch.where(attn_mask, 0.0, -torch.inf)
        return (q @ k.mT * scale + attn_mask).softmax(dim=-1) @ v

    inputs = draw(n_q=13)
    expected = attention(*inputs, mask=mask, backend="reference")
    monkeypatch.setattr("model.attention.sdpa.scaled_dot_product_attention", plain)
    output = attention(*inputs, mask=mask, backend="sdpa")
    torch.testing.assert_close(output, expected, rtol=0, atol=2e-6)
    output.sum().backward()
    assert all(t.grad.isfinite().all() for t in inputs)


def test_every_exported_name_exists():
    assert all(hasattr(model.attention, name) for name in model.attention.__all__)
