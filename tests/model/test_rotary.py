from __future__ import annotations

import cmath

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.errors import AttentionError
from model.rotary import RotaryTable, apply_rotary, rotary_table


def tokens(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=dtype)


def test_each_pair_turns_like_a_complex_number_by_its_own_frequency():
    x = tokens(1, 1, 1, 6)
    turned = apply_rotary(x, rotary_table(torch.tensor([5]), 6, base=100.0, dtype=torch.float64))
    for pair in range(3):
        before = complex(x[0, 0, 0, pair], x[0, 0, 0, pair + 3])
        after = complex(turned[0, 0, 0, pair], turned[0, 0, 0, pair + 3])
        assert cmath.isclose(after, before * cmath.exp(1j * 5 * 100.0 ** (-pair / 3)))


@given(shift=st.integers(-(10**6), 10**6), width=st.integers(1, 9))
def test_scores_depend_on_the_difference_of_positions_only(shift: int, width: int):
    q, k = tokens(1, 2, 5, width), tokens(1, 2, 5, width).flip(2)
    positions = torch.arange(5)
    here, there = (
        rotary_table(positions + start, width, dtype=torch.float64) for start in (0, shift)
    )
    scores = apply_rotary(q, here) @ apply_rotary(k, here).mT
    shifted = apply_rotary(q, there) @ apply_rotary(k, there).mT
    torch.testing.assert_close(shifted, scores, rtol=0, atol=1e-8)


@given(width=st.integers(1, 9))
def test_turning_keeps_the_length_of_every_token(width: int):
    x = tokens(2, 2, 4, width)
    turned = apply_rotary(x, rotary_table(torch.arange(100, 104), width, dtype=torch.float64))
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))


def test_last_channel_of_an_odd_width_does_not_turn():
    x = tokens(1, 1, 3, 5)
    turned = apply_rotary(x, rotary_table(torch.arange(7, 10), 5))
    assert torch.equal(turned[..., 4], x[..., 4])
    assert torch.equal(
        turned[..., :4], apply_rotary(x[..., :4], rotary_table(torch.arange(7, 10), 4))
    )
    assert not torch.isclose(turned[..., :4], x[..., :4]).any()


def test_far_positions_keep_their_angle_in_a_float32_table():
    far = 123_456_789
    table = rotary_table(torch.tensor([far]), 8)
    exact = cmath.exp(1j * far)
    assert table.cos.dtype == torch.float32
    assert table.cos[0, 0].item() == pytest.approx(exact.real, abs=1e-6)
    assert table.sin[0, 0].item() == pytest.approx(exact.imag, abs=1e-6)


def test_each_batch_row_may_have_its_own_positions():
    x = tokens(2, 3, 4, 6)
    positions = torch.stack([torch.arange(4), torch.arange(50, 54)])
    turned = apply_rotary(x, rotary_table(positions, 6))
    for row in range(2):
        alone = apply_rotary(x[row : row + 1], rotary_table(positions[row], 6))
        assert torch.equal(turned[row : row + 1], alone)


def test_narrow_tokens_keep_their_type_and_are_turned_in_the_wider_one():
    x = tokens(1, 1, 64, 8, dtype=torch.bfloat16)
    table = rotary_table(torch.arange(64), 8)
    turned = apply_rotary(x, table)
    assert turned.dtype == torch.bfloat16
    assert torch.equal(turned, apply_rotary(x.float(), table).bfloat16())


def test_the_last_rows_are_those_of_the_last_positions():
    table = rotary_table(torch.arange(10), 4)
    assert table.length == 10
    assert torch.equal(table.last(3).cos, rotary_table(torch.arange(7, 10), 4).cos)
    assert table.last(0).length == 0


@pytest.mark.parametrize(
    ("positions", "width", "base", "fragment"),
    [
        (torch.arange(3.0), 4, 1e4, "int64"),
        (torch.arange(3, dtype=torch.int32), 4, 1e4, "int64"),
        (torch.zeros(1, 1, 1, dtype=torch.int64), 4, 1e4, "(N,)"),
        (torch.arange(3), 0, 1e4, "head width"),
        (torch.arange(3), 4, 0.0, "base"),
        (torch.arange(3), 4, float("inf"), "base"),
    ],
)
def test_a_table_of_impossible_positions_is_refused(positions, width, base, fragment):
    with pytest.raises(AttentionError, match=r"expected .* got") as error:
        rotary_table(positions, width, base)
    assert fragment in str(error.value)


@pytest.mark.parametrize("positions", [torch.arange(5), torch.zeros(3, 4, dtype=torch.int64)])
def test_a_table_of_other_tokens_is_refused(positions):
    with pytest.raises(AttentionError, match="expected a rotary table of 4 positions x 3 pairs"):
        apply_rotary(tokens(2, 1, 4, 6), rotary_table(positions, 6))


def test_cosines_without_their_sines_are_refused():
    with pytest.raises(AttentionError, match="of one shape"):
        RotaryTable(torch.zeros(3, 2), torch.zeros(2, 2))
