"""Shifts cover what they say on like data, and leave alone what is no more than chance."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.calibration import MOST_SHIFT
from training.conformal import conformal_shifts, ranked, trust

LEVELS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
NORMAL = NormalDist()


def draw(rng, count, *, bias=0.0, spread=1.0, group_bias=0.0, groups=24):
    """Scores (N, Q) of normal targets under standard normal forecasts, and groups (N,)."""
    group = rng.integers(0, groups, count)
    target = bias + group_bias * rng.normal(size=groups)[group] + spread * rng.normal(size=count)
    quantiles = np.array([NORMAL.inv_cdf(level) for level in LEVELS])
    width = NORMAL.inv_cdf(0.9) - NORMAL.inv_cdf(0.1)
    return (target[:, None] - quantiles) / width, group


def covered(scores, shifts):
    """(Q,) share of targets at or below each shifted quantile."""
    return (scores <= shifts).mean(axis=0)


@given(st.integers(0, 2**32 - 1), st.floats(-1, 1), st.floats(0.4, 2.5))
def test_levels_and_intervals_cover_what_they_say_on_exchangeable_targets(seed, bias, spread):
    rng = np.random.default_rng(seed)
    scores, groups = draw(rng, 8_000, bias=bias, spread=spread)
    past, coming = scores[:4_000], scores[4_000:]
    shifts = conformal_shifts(past, groups[:4_000], LEVELS)
    found = covered(coming, shifts)
    # Six standard errors of both samples, and the two within which a bias is left alone.
    bound = 8 * math.sqrt(0.25 / 4_000)
    np.testing.assert_allclose(found, LEVELS, atol=bound)
    intervals = found[::-1][:5] - found[:5]
    np.testing.assert_allclose(intervals, 1 - 2 * np.array(LEVELS[:5]), atol=bound)


@given(st.integers(0, 2**32 - 1), st.integers(1, 200), st.floats(0.01, 0.99))
def test_a_rank_covers_at_least_its_level_of_its_own_sample(seed, count, level):
    scores = np.random.default_rng(seed).normal(size=count)
    share = (scores <= ranked(scores, level)).mean()
    assert share >= level or math.ceil((count + 1) * level) > count
    assert share <= level + 2 / count


def test_ten_times_a_tenth_is_one():
    assert ranked(np.arange(9.0) / 10, 0.1) == 0.0


def test_quantiles_that_are_right_stay():
    scores, groups = draw(np.random.default_rng(0), 20_000)
    np.testing.assert_allclose(conformal_shifts(scores, groups, LEVELS), 0, atol=0.03)


def test_a_bias_of_all_groups_is_followed():
    scores, groups = draw(np.random.default_rng(0), 20_000, bias=0.5)
    shifts = conformal_shifts(scores, groups, LEVELS)
    width = NORMAL.inv_cdf(0.9) - NORMAL.inv_cdf(0.1)
    np.testing.assert_allclose(shifts * width, 0.5, atol=0.06)


def test_a_bias_that_groups_do_not_share_is_left_alone_but_the_interval_still_covers():
    rng = np.random.default_rng(3)
    scores, groups = draw(rng, 4_000, group_bias=0.8, groups=6)
    shifts = conformal_shifts(scores, groups, LEVELS)
    assert shifts[LEVELS.index(0.5)] == 0
    np.testing.assert_allclose(shifts, -shifts[::-1])
    inside = (scores[:, 1] >= shifts[1]) & (scores[:, 9] <= shifts[9])
    assert inside.mean() == pytest.approx(0.8, abs=0.01)


def test_zeros_at_a_limit_of_zero_are_nothing_to_mend():
    """Nine of ten targets and every quantile but the highest are zero."""
    scores = np.zeros((1_000, 3))
    scores[:, 2] = -1
    scores[::10] = [1.0, 1.0, -0.1]
    shifts = conformal_shifts(scores, np.arange(1_000) % 20, (0.1, 0.5, 0.9))
    assert shifts[1] == 0
    assert shifts[0] <= 0
    inside = (scores[:, 0] >= shifts[0]) & (scores[:, 2] <= shifts[2])
    assert inside.mean() >= 0.8


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.floats(1, 1e6))
def test_shifts_are_finite_and_bounded_whatever_the_scores(seed, count, size):
    rng = np.random.default_rng(seed)
    scores = size * rng.standard_cauchy((count, 3))
    shifts = conformal_shifts(scores, rng.integers(0, 5, count), (0.1, 0.5, 0.9))
    assert np.isfinite(shifts).all()
    assert np.abs(shifts).max() <= MOST_SHIFT


def test_a_level_without_its_counterpart_moves_alone():
    rng = np.random.default_rng(0)
    scores, groups = draw(rng, 8_000, bias=1.0)
    picked = scores[:, [1, 2]]
    shifts = conformal_shifts(picked, groups, (0.1, 0.2))
    np.testing.assert_allclose(covered(picked, shifts), (0.1, 0.2), atol=0.03)


@pytest.mark.parametrize(
    ("excess", "expected"),
    [
        ([], 0.0),
        ([0.3], 0.0),
        ([0.1, -0.1], 0.0),
        ([0.1, 0.1, 0.1], 1.0),
        ([0.0, 0.0], 0.0),
        ([0.1, 0.3], 0.0),
        ([0.2, 0.2, 0.3, 0.3], 1 - (2 * 0.05773502691896258 / 2 / 0.25) ** 2),
    ],
)
def test_trust_is_for_what_groups_agree_on(excess, expected):
    assert trust(np.array(excess)) == pytest.approx(expected)
