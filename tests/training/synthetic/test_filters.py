"""Building blocks against loops over samples and against their textbook statistics."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.synthetic.filters import (
    autoregressive,
    chance,
    delayed,
    geometric_filter,
    log_uniform,
    power_law_noise,
    slow_curve,
    unit_mean,
)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    length=st.integers(1, 70),
    ratios=st.lists(st.floats(0.0, 0.99), min_size=1, max_size=4),
)
def test_geometric_filter_equals_the_recursion(seed, length, ratios):
    series = np.random.default_rng(seed).normal(size=(len(ratios), length)).astype(np.float32)
    ratio = np.array(ratios, dtype=np.float32)
    expected = series.astype(np.float64)
    for t in range(1, length):
        expected[:, t] += ratio * expected[:, t - 1]
    # Lags that weigh under a thousandth are left out.
    np.testing.assert_allclose(geometric_filter(series, ratio), expected, atol=0.05)


def test_geometric_filter_leaves_its_input_alone():
    series = np.ones((1, 8), dtype=np.float32)
    geometric_filter(series, np.array([0.5], dtype=np.float32))
    assert (series == 1.0).all()


def test_autoregressive_noise_is_stationary_with_the_asked_for_correlation():
    ratio = np.full(400, 0.9, dtype=np.float32)
    noise = autoregressive(np.random.default_rng(0), 400, ratio)
    assert noise.std() == pytest.approx(1.0, abs=0.05)
    assert noise[:, 0].std() == pytest.approx(1.0, abs=0.15)
    assert np.corrcoef(noise[:, :-1].ravel(), noise[:, 1:].ravel())[0, 1] == pytest.approx(
        0.9, abs=0.02
    )


def test_power_law_noise_has_the_asked_for_slope():
    noise = power_law_noise(np.random.default_rng(0), 1024, np.full(200, 1.5, dtype=np.float32))
    power = (np.abs(np.fft.rfft(noise * np.hanning(1024), axis=1)) ** 2).mean(axis=0)
    bins = np.arange(8, 300)
    slope = np.polyfit(np.log(bins), np.log(power[bins]), 1)[0]
    assert slope == pytest.approx(-1.5, abs=0.2)


def test_power_law_noise_does_not_close_the_circle():
    noise = power_law_noise(np.random.default_rng(0), 600, np.full(300, 2.0, dtype=np.float32))
    gap = np.abs(noise[:, 0] - noise[:, -1]).mean()
    step = np.abs(np.diff(noise, axis=1)).mean()
    assert gap > 5.0 * step


@pytest.mark.parametrize("steps", [0, 1, 3, 50])
def test_delayed_series_repeat_their_first_value(steps):
    series = np.arange(10, dtype=np.float32)[None]
    expected = np.maximum(np.arange(10) - steps, 0)
    assert delayed(series, np.array([steps]))[0].tolist() == expected.tolist()


def test_log_uniform_spreads_over_decades():
    draws = log_uniform(np.random.default_rng(0), 1e-3, 1e5, 10_000)
    assert draws.min() >= 1e-3 * 0.999
    assert draws.max() <= 1e5 * 1.001
    assert (draws < 10.0).mean() == pytest.approx(0.5, abs=0.02)


def test_chance_shows_true_as_often_as_asked():
    assert chance(np.random.default_rng(0), 0.2, 10_000).mean() == pytest.approx(0.2, abs=0.02)


def test_slow_curves_move_slowly():
    curve = slow_curve(np.random.default_rng(0), 200, 500, 10)
    assert curve.std() == pytest.approx(0.9, abs=0.25)
    assert np.abs(np.diff(curve, axis=1)).mean() < 0.05


def test_rows_of_zeros_have_no_mean_to_divide_by():
    series = np.array([[0.0, 0.0], [1.0, 3.0]], dtype=np.float32)
    assert unit_mean(series).tolist() == [[0.0, 0.0], [0.5, 1.5]]
