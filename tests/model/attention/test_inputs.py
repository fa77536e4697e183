from __future__ import annotations

import pytest
import torch

from model.attention import BACKENDS, Mask, QkNorm, attention
from model.errors import AttentionError
from model.rotary import RotaryTable, apply_rotary, rotary_table


def rms_normed(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return x / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt() * weight


@pytest.mark.parametrize("backend", BACKENDS)
def test_queries_and_keys_are_normed_then_turned(draw, backend):
    q, k, v = draw(n_q=9, dtype=torch.float64)
    norm = QkNorm(torch.linspace(0.5, 2, 8).double(), torch.linspace(2, 0.5, 8).double(), eps=0.1)
    table = rotary_table(torch.arange(9), 8, dtype=torch.float64)
    output = attention(q, k, v, rope=table, qk_norm=norm, backend=backend)
    plain = attention(
        apply_rotary(rms_normed(q, norm.q_weight, 0.1), table),
        apply_rotary(rms_normed(k, norm.k_weight, 0.1), table),
        v,
        backend="reference",
    )
    torch.testing.assert_close(output, plain, rtol=0, atol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradcheck_passes_through_norm_and_turn(draw, backend):
    inputs = draw(batch=2, heads=1, n_q=5, width=3, dtype=torch.float64)
    gains = [torch.linspace(0.5, 2, 3, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    table = rotary_table(torch.arange(5), 3, dtype=torch.float64)
    mask = Mask(key_valid=torch.tensor([[True, False, True, True, False], [False] * 5]))

    def normed(q, k, v, q_gain, k_gain):
        norm = QkNorm(q_gain, k_gain)
        return attention(q, k, v, mask=mask, rope=table, qk_norm=norm, backend=backend)

    assert torch.autograd.gradcheck(normed, (*inputs, *gains))


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_origin_of_rotary_positions_does_not_matter(draw, backend):
    q, k, v = draw(n_q=12, dtype=torch.float64)
    near, far = (
        rotary_table(torch.arange(12) + start, 8, dtype=torch.float64) for start in (0, 5000)
    )
    torch.testing.assert_close(
        attention(q, k, v, rope=far, backend=backend),
        attention(q, k, v, rope=near, backend=backend),
        rtol=0,
        atol=1e-11,
    )


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("causal", [False, True])
def test_the_last_queries_alone_answer_as_they_do_among_all(draw, backend, causal):
    q, k, v = draw(n_q=12)
    table, mask = rotary_table(torch.arange(12), 8), Mask(causal=causal)
    every = attention(q, k, v, rope=table, mask=mask, backend=backend)
    last = attention(q[:, :, -3:], k, v, rope=table, mask=mask, backend=backend)
    torch.testing.assert_close(last, every[:, :, -3:], rtol=0, atol=2e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_batch_rows_may_have_their_own_positions(draw, backend):
    q, k, v = draw(n_q=6)
    positions = torch.stack([torch.arange(6), torch.arange(6) * 3])
    both = attention(q, k, v, rope=rotary_table(positions, 8), backend=backend)
    second = attention(q[1:], k[1:], v[1:], rope=rotary_table(positions[1], 8), backend=backend)
    torch.testing.assert_close(both[1:], second, rtol=0, atol=2e-6)
    assert not torch.allclose(both[:1], attention(q[:1], k[:1], v[:1], backend=backend))


def test_norm_of_narrow_tokens_is_worked_out_in_float32(draw):
    q, k, v = (t.detach() * 200 for t in draw(dtype=torch.float16))
    unit = torch.ones(8, dtype=torch.float16)
    output = attention(q, k, v, qk_norm=QkNorm(unit, unit))
    assert output.dtype == torch.float16
    wide = attention(q.float(), k.float(), v.float(), qk_norm=QkNorm(unit.float(), unit.float()))
    torch.testing.assert_close(output.float(), wide, rtol=1e-2, atol=1.0)


Q = torch.zeros(2, 3, 5, 4)
META = Q.to("meta")
TABLE = rotary_table(torch.arange(5), 4)
GAINS = torch.ones(4)


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize(
    ("q", "k", "v", "options", "fragment"),
    [
        (Q[0], Q, Q, {}, "of shape (B, H, N, D), got q (3, 5, 4)"),
        (Q, Q[0], Q, {}, "k (3, 5, 4), v (2, 3, 5, 4)"),
        (Q, Q[:1], Q[:1], {}, "one batch"),
        (Q, Q[:, :1], Q[:, :1], {}, "expand() shared heads"),
        (Q, Q[..., :2], Q[..., :2], {}, "head width"),
        (Q, Q, Q[:, :, :2], {}, "k, v of one length"),
        (Q[..., :0], Q[..., :0], Q[..., :0], {}, "at least 1"),
        (Q, Q.double(), Q, {}, "got torch.float32, torch.float64, torch.float32"),
        (Q, Q, Q.bfloat16(), {}, "got torch.float32, torch.float32, torch.bfloat16"),
        (Q.long(), Q.long(), Q.long(), {}, "q, k, v of one floating-point type"),
        (Q, Q, Q.int(), {}, "got torch.float32, torch.float32, torch.int32"),
        (Q.bool(), Q.bool(), Q.bool(), {}, "got torch.bool"),
        (Q.to(torch.complex64),) * 3 + ({}, "got torch.complex64"),
        (Q.to(torch.float8_e4m3fn),) * 3 + ({}, "of torch.float16, torch.bfloat16, torch.float32"),
        (Q, META, Q, {}, "q, k, v on one device, got cpu, meta, cpu"),
        (META, Q, Q, {}, "got meta, cpu, cpu"),
        (META, META, META, {}, "q, k, v with values, got shapes alone, on meta"),
        (Q.to_sparse(),) * 3 + ({}, "q, k, v in strides, got torch.sparse_coo"),
        (Q, Q, Q, {"scale": float("nan")}, "finite scale, at most 3.4e+38, got nan"),
        (Q, Q, Q, {"scale": float("-inf")}, "finite scale, at most 3.4e+38, got -inf"),
        (Q, Q, Q, {"scale": 1e39}, "finite scale, at most 3.4e+38, got 1e+39"),
        (Q, Q, Q, {"scale": 1j}, "finite scale, at most 3.4e+38, got 1j"),
        (
            Q,
            Q,
            Q,
            {"rope": rotary_table(torch.arange(4), 4)},
            "rotary table, cos, of shape (5, 2) or",
        ),
        (Q, Q, Q, {"rope": rotary_table(torch.arange(5), 6)}, "got (5, 3)"),
        (Q, Q, Q, {"rope": RotaryTable(TABLE.cos, TABLE.sin.to("meta"))}, "got (5, 2) on meta"),
        (Q, Q, Q, {"rope": RotaryTable(TABLE.cos.long(), TABLE.sin)}, "cos, of a floating-point"),
        (Q, Q, Q, {"rope": RotaryTable(TABLE.cos, TABLE.sin.long())}, "sin, of a floating-point"),
        (Q, Q, Q, {"mask": Mask(key_valid=torch.ones(2, 4, dtype=torch.bool))}, "got (2, 4)"),
        (Q, Q, Q, {"mask": Mask(key_valid=torch.ones(1, 5, dtype=torch.bool))}, "(2, 5) on cpu"),
        (
            Q,
            Q,
            Q,
            {"mask": Mask(key_valid=torch.ones(2, 5, dtype=torch.bool, device="meta"))},
            "mask.key_valid of shape (2, 5) on cpu, got (2, 5) on meta",
        ),
        (Q, Q, Q, {"mask": Mask(alibi_slopes=torch.ones(2))}, "alibi_slopes of shape (3,)"),
        (Q, Q, Q, {"mask": Mask(alibi_slopes=torch.ones(3, device="meta"))}, "on meta"),
        (Q, Q, Q, {"qk_norm": QkNorm(torch.ones(3), GAINS)}, "qk_norm.q_weight"),
        (Q, Q, Q, {"qk_norm": QkNorm(GAINS, torch.ones(1))}, "qk_norm.k_weight"),
        (Q, Q, Q, {"qk_norm": QkNorm(GAINS.to("meta"), GAINS)}, "on cpu, got (4,) on meta"),
    ],
)
def test_every_backend_refuses_inputs_that_do_not_fit_with_what_was_expected_and_came(
    q, k, v, options, fragment, learns
):
    if learns and q.is_floating_point() and q.dtype != torch.float8_e4m3fn:
        q = q.detach().clone().requires_grad_()
    for backend in ("auto", *BACKENDS):
        with pytest.raises(AttentionError, match=r"expected .* got") as error:
            attention(q, k, v, backend=backend, **options)
        assert isinstance(error.value, ValueError)
        assert fragment in str(error.value), backend


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        ({"k": Q.numpy()}, "expected k of Tensor, got ndarray"),
        ({"q": None}, "expected q of Tensor, got NoneType"),
        ({"v": [1.0]}, "expected v of Tensor, got list"),
        ({"mask": None}, "expected mask of Mask, got NoneType"),
        ({"mask": Q[0, 0] > 0}, "expected mask of Mask, got Tensor"),
        ({"rope": (Q, Q)}, "expected rope of RotaryTable or NoneType, got tuple"),
        ({"qk_norm": GAINS}, "expected qk_norm of QkNorm or NoneType, got Tensor"),
    ],
)
@pytest.mark.parametrize("backend", ["auto", *BACKENDS])
def test_what_is_of_another_kind_altogether_is_named(options, fragment, backend):
    with pytest.raises(AttentionError) as error:
        attention(**{"q": Q, "k": Q, "v": Q, "backend": backend, **options})
    assert str(error.value) == fragment


def test_a_backend_that_nobody_knows_is_refused_with_those_that_are_known():
    with pytest.raises(AttentionError, match="got 'fastest'") as error:
        attention(Q, Q, Q, backend="fastest")
    assert all(repr(name) in str(error.value) for name in ("auto", *BACKENDS))


def test_a_scale_that_float32_cannot_hold_is_one_for_float64():
    wide = Q.double()
    assert attention(wide, wide, wide, scale=1e39).shape == Q.shape


@pytest.mark.parametrize(
    ("terms", "fragment"),
    [
        ((GAINS.long(), GAINS), "qk_norm.q_weight of a floating-point type, got torch.int64"),
        ((GAINS, GAINS.to(torch.complex64)), "qk_norm.k_weight of a floating-point type, got"),
        ((GAINS, GAINS, 0.0), "finite qk_norm.eps above 0, got 0.0"),
        ((GAINS, GAINS, -1e-6), "got -1e-06"),
        ((GAINS, GAINS, float("nan")), "got nan"),
    ],
)
def test_a_norm_that_means_nothing_is_refused(terms, fragment):
    with pytest.raises(AttentionError) as error:
        QkNorm(*terms)
    assert fragment in str(error.value)
