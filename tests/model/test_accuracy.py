"""Metrics against hand-worked numbers and their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.accuracy import measure, seasonal_naive_error

LEVELS = (0.1, 0.5, 0.9)


def test_a_hand_worked_case():
    quantiles = np.array([[[8.0, 10.0, 12.0], [8.0, 10.0, 12.0]]])
    found = measure(quantiles, np.array([[11.0, 15.0]]), LEVELS, 2.0)
    # pinball 2 * (0.1 * 3 + 0.5 * 1 + 0.1 * 1) for 11, 2 * (0.1 * 7 + 0.5 * 5 + 0.9 * 3) for 15
    assert found.wql == pytest.approx((2 * 0.9 + 2 * 5.9) / 3 / 26)
    assert found.wape == pytest.approx(6 / 26)
    assert found.mase == pytest.approx((0.5 + 2.5) / 2)
    assert found.coverage == 0.5
    assert found.mean_width == 4.0


def test_missing_targets_do_not_count():
    quantiles = np.tile([8.0, 10.0, 12.0], (1, 2, 1))
    found = measure(quantiles, np.array([[11.0, np.nan]]), LEVELS)
    assert found.targets == 1
    assert found.wape == pytest.approx(1 / 11)
    assert np.isnan(found.mase)


def test_a_perfect_forecast_costs_nothing():
    target = np.array([[1.0, 2.0]])
    found = measure(np.repeat(target[..., None], 3, axis=-1), target, LEVELS, 1.0)
    assert (found.wql, found.wape, found.mase, found.coverage) == (0, 0, 0, 1)


@given(st.integers(0, 10_000), st.integers(1, 9))
def test_parts_add_up_to_the_whole(seed, cut):
    rng = np.random.default_rng(seed)
    quantiles = np.sort(rng.normal(size=(10, 4, 3)), axis=-1)
    target, scale = rng.normal(size=(10, 4)), rng.uniform(0.1, 2, size=10)
    whole = measure(quantiles, target, LEVELS, scale)
    parts = measure(quantiles[:cut], target[:cut], LEVELS, scale[:cut]) + measure(
        quantiles[cut:], target[cut:], LEVELS, scale[cut:]
    )
    for name in ("wql", "wape", "mase", "coverage", "mean_width"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name))


def test_nothing_but_zeros_has_no_relative_error():
    assert np.isnan(measure(np.ones((1, 1, 3)), np.zeros((1, 1)), LEVELS).wql)


def test_the_greatest_values_of_float32_are_scored_with_numbers():
    greatest = np.finfo(np.float32).max
    target = np.full((1, 2), -greatest)
    found = measure(np.full((1, 2, 3), greatest), target, LEVELS, 1.0)
    assert found.wape == pytest.approx(2)
    assert found.wql == pytest.approx(2)
    assert np.isfinite(seasonal_naive_error(np.array([greatest, -greatest]), 1))


def test_seasonal_naive_error_leaves_gaps_out():
    series = np.array([1.0, 2.0, 4.0, np.nan, 5.0])
    assert seasonal_naive_error(series, 2) == pytest.approx((3 + 1) / 2)
    assert np.isnan(seasonal_naive_error(series, 9))
    assert np.isnan(seasonal_naive_error(np.full(4, np.nan), 1))
