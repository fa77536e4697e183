from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.attention import UNMASKED, Mask, TileVisibility
from model.attention.mask import sequence_positions
from model.errors import AttentionError

CPU = torch.device("cpu")


def table(mask: Mask, n_q: int, n_k: int) -> list[str]:
    """Rows of the mask as text, one letter a key: x is visible."""
    visible = mask.visible(*sequence_positions(n_q, n_k, CPU))[0, 0]
    return ["".join(".x"[int(seen)] for seen in row) for row in visible]


@pytest.mark.parametrize(
    ("mask", "n_q", "n_k", "rows"),
    [
        (UNMASKED, 2, 3, ["xxx", "xxx"]),
        (Mask(causal=True), 3, 3, ["x..", "xx.", "xxx"]),
        (Mask(causal=True), 2, 4, ["xxx.", "xxxx"]),
        (Mask(causal=True), 4, 2, ["..", "..", "x.", "xx"]),
        (Mask(window=2), 4, 4, ["xx..", "xxx.", ".xxx", "..xx"]),
        (Mask(window=2), 4, 2, ["..", "x.", "xx", "xx"]),
        (Mask(window=1), 2, 4, ["..x.", "...x"]),
        (Mask(causal=True, window=2), 4, 4, ["x...", "xx..", ".xx.", "..xx"]),
        (Mask(window=1, sinks=1), 4, 4, ["x...", "xx..", "x.x.", "x..x"]),
        (Mask(causal=True, window=1, sinks=2), 4, 4, ["x...", "xx..", "xxx.", "xx.x"]),
        (Mask(causal=True, key_valid=torch.tensor([[False, True]])), 2, 2, ["..", ".x"]),
    ],
)
def test_visible_pairs_are_those_of_the_table(mask, n_q, n_k, rows):
    assert table(mask, n_q, n_k) == rows


def test_alibi_lowers_a_score_by_slope_times_distance():
    bias = Mask(alibi_slopes=torch.tensor([0.5, 2.0])).bias(
        *sequence_positions(2, 3, CPU), torch.float64
    )
    assert bias is not None
    assert bias.dtype == torch.float64
    assert bias[0].tolist() == [
        [[-0.5, 0.0, -0.5], [-1.0, -0.5, 0.0]],
        [[-2.0, 0.0, -2.0], [-4.0, -2.0, 0.0]],
    ]


def test_a_mask_without_slopes_adds_nothing_to_scores():
    assert Mask(causal=True).bias(*sequence_positions(2, 2, CPU), torch.float32) is None


lengths = st.integers(1, 24)
masks = st.builds(Mask, causal=st.booleans()) | st.builds(
    Mask, causal=st.booleans(), window=st.integers(1, 26), sinks=st.integers(0, 5)
)


@st.composite
def tiles(draw: st.DrawFn) -> tuple[int, int, int, int, int, int]:
    """N_q, N_k and a rectangle of positions within them."""
    n_q, n_k = draw(lengths), draw(lengths)
    q_lo = draw(st.integers(0, n_q - 1))
    k_lo = draw(st.integers(0, n_k - 1))
    q_hi, k_hi = draw(st.integers(q_lo + 1, n_q)), draw(st.integers(k_lo + 1, n_k))
    return n_q, n_k, q_lo + n_k - n_q, q_hi + n_k - n_q, k_lo, k_hi


@given(mask=masks, tile=tiles())
def test_a_tile_is_skipped_exactly_when_no_pair_of_it_is_visible(mask, tile):
    _, _, q_lo, q_hi, k_lo, k_hi = tile
    visible = mask.visible(torch.arange(q_lo, q_hi), torch.arange(k_lo, k_hi))
    said = mask.tile_visibility(q_lo, q_hi, k_lo, k_hi)
    assert (said is TileVisibility.NONE) == (not visible.any())
    assert said is not TileVisibility.FULL or visible.all()


@given(mask=masks, tile=tiles())
def test_a_full_tile_is_called_so_where_one_rule_alone_shows_it(mask, tile):
    _, _, q_lo, q_hi, k_lo, k_hi = tile
    pairs = torch.arange(q_lo, q_hi), torch.arange(k_lo, k_hi)
    without_sinks = Mask(causal=mask.causal, window=mask.window).visible(*pairs)
    if without_sinks.all():
        assert mask.tile_visibility(q_lo, q_hi, k_lo, k_hi) is TileVisibility.FULL


def test_a_tile_of_sinks_alone_is_full_however_far():
    assert Mask(window=2, sinks=4).tile_visibility(90, 99, 0, 4) is TileVisibility.FULL


def test_key_validity_makes_a_full_tile_partial_but_never_hides_it_unseen():
    valid = Mask(key_valid=torch.ones(1, 8, dtype=torch.bool))
    assert valid.tile_visibility(0, 8, 0, 8) is TileVisibility.PARTIAL
    later = Mask(causal=True, key_valid=torch.ones(1, 8, dtype=torch.bool))
    assert later.tile_visibility(0, 2, 4, 8) is TileVisibility.NONE


@given(mask=masks, n_q=lengths, n_k=lengths)
def test_a_reduced_mask_shows_the_same_pairs(mask, n_q, n_k):
    positions = sequence_positions(n_q, n_k, CPU)
    reduced = mask.reduced(n_q, n_k)
    assert torch.equal(reduced.visible(*positions), mask.visible(*positions))


def test_terms_that_hide_nothing_are_dropped():
    reduced = Mask(causal=True, window=9, sinks=2).reduced(1, 9)
    assert (reduced.causal, reduced.window, reduced.sinks) == (False, None, 0)
    kept = Mask(causal=True, window=8, sinks=2).reduced(9, 9)
    assert (kept.causal, kept.window, kept.sinks) == (True, 8, 2)


@given(mask=masks, n_q=lengths, n_k=lengths, seed=st.none() | st.integers(0, 99))
def test_seen_keys_are_the_columns_with_a_visible_pair(mask, n_q, n_k, seed):
    if seed is not None:
        valid = torch.rand(2, n_k, generator=torch.Generator().manual_seed(seed)) < 0.5
        mask = Mask(mask.causal, mask.window, mask.sinks, valid)
    seen = mask.seen_keys(n_q, n_k, CPU)
    columns = mask.visible(*sequence_positions(n_q, n_k, CPU)).any(dim=2)[:, 0]
    assert columns.all() if seen is None else torch.equal(seen.expand_as(columns), columns)


@pytest.mark.parametrize(
    ("mask", "n_q", "n_k", "needed"),
    [
        (UNMASKED, 5, 5, False),
        (Mask(causal=True), 5, 5, False),
        (Mask(causal=True), 4, 5, True),
        (Mask(key_valid=torch.ones(1, 5, dtype=torch.bool)), 5, 5, False),
        (Mask(causal=True, key_valid=torch.ones(1, 5, dtype=torch.bool)), 5, 5, True),
        (Mask(window=2), 5, 5, True),
        (Mask(alibi_slopes=torch.ones(1)), 5, 5, True),
    ],
)
def test_a_matrix_is_needed_only_where_no_shorter_form_says_the_mask(mask, n_q, n_k, needed):
    assert mask.needs_matrix(n_q, n_k) is needed


@pytest.mark.parametrize(
    ("terms", "fragment"),
    [
        ({"window": 0}, "window of at least 1 key, got 0"),
        ({"window": -3}, "window of at least 1 key, got -3"),
        ({"window": 2.5}, "window of at least 1 key, got 2.5"),
        ({"window": True}, "window of at least 1 key, got True"),
        ({"window": 2**63}, "a whole number below 2**63"),
        ({"window": 4, "sinks": -1}, "sinks >= 0, got -1"),
        ({"window": 4, "sinks": 1.0}, "sinks >= 0, got 1.0"),
        ({"window": 4, "sinks": 2**63}, "a whole number below 2**63"),
        ({"sinks": 3}, "expected a window beside sinks"),
        ({"causal": True, "sinks": 3}, "got sinks 3 and no window"),
        ({"causal": 1}, "causal as True or False, got 1"),
        ({"causal": None}, "causal as True or False, got None"),
        ({"key_valid": torch.ones(2, 3)}, "bool (B, N_k), got torch.float32 (2, 3)"),
        ({"key_valid": torch.ones(3, dtype=torch.bool)}, "bool (B, N_k), got torch.bool (3,)"),
        ({"alibi_slopes": torch.ones(1, 3)}, "constants (H,), got torch.float32 (1, 3)"),
        ({"alibi_slopes": torch.ones(3, dtype=torch.int64)}, "got torch.int64 (3,)"),
        ({"alibi_slopes": torch.ones(3, requires_grad=True)}, "requires_grad=True"),
    ],
)
def test_a_mask_that_means_nothing_is_refused(terms, fragment):
    with pytest.raises(AttentionError) as error:
        Mask(**terms)
    assert fragment in str(error.value)
