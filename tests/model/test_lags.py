"""Seasonal lags against their definition, one sample at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model import lags


def by_definition(series: list[float], position: int, period: int, repeat: int) -> float:
    """Step back by whole periods until inside the history, then `repeat` periods more."""
    back = 1
    while position - back * period >= len(series):
        back += 1
    index = position - (back + repeat) * period
    return series[index] if index >= 0 else math.nan


@given(
    steps=st.integers(1, 40),
    future=st.integers(1, 30),
    period=st.integers(1, 12),
    repeats=st.integers(1, 4),
)
def test_lags_are_the_nearest_whole_periods_back(steps, future, period, repeats):
    series = [float(i) for i in range(steps)]
    found = lags.lagged(torch.tensor([[series]]), 0, steps + future, period, repeats)[0, 0]
    expected = [
        [by_definition(series, position, period, repeat) for repeat in range(repeats)]
        for position in range(steps + future)
    ]
    np.testing.assert_array_equal(found.numpy(), np.array(expected, dtype=np.float32))


@pytest.mark.parametrize(
    ("step_ms", "steps"), [(3_600_000, 24), (900_000, 96), (1_000, 86_400), (86_400_000, None)]
)
def test_a_day_in_steps(step_ms, steps):
    assert lags.period_steps(lags.DAY_MS, step_ms) == steps


def test_a_week_of_daily_samples_is_seven_steps():
    assert lags.period_steps(lags.WEEK_MS, lags.DAY_MS) == 7


def test_moments_leave_missing_samples_out():
    samples = torch.tensor([[[[1.0, 3.0, torch.nan, torch.nan], [torch.nan] * 4]]])
    found = lags.moments(samples)
    assert found.mean.tolist() == [[[2.0, 0.0]]]
    assert found.spread.tolist() == [[[1.0, 0.0]]]
    assert found.seen_ratio.tolist() == [[[0.5, 0.0]]]


def test_coarse_history_is_not_smoothed():
    history = torch.rand(1, 1, 50)
    assert lags.smoothed(history, 900_000) is history


def test_dense_history_is_smoothed_by_a_local_mean():
    history = torch.rand(1, 1, 60)
    history[..., 7] = torch.nan
    found = lags.smoothed(history, 120_000)[0, 0]  # 720 a day: five samples either side
    for position in range(60):
        around = history[0, 0, max(0, position - 5) : position + 6]
        torch.testing.assert_close(found[position], around.nanmean(), rtol=1e-5, atol=1e-6)


def test_smoothing_far_from_any_sample_gives_no_value():
    history = torch.full((1, 1, 30), torch.nan)
    history[..., 0] = 1.0
    found = lags.smoothed(history, 120_000)[0, 0]
    assert found[:6].tolist() == [1.0] * 6
    assert found[6:].isnan().all()


@given(
    repeats=st.integers(1, 30),
    gaps=st.floats(0, 1),
    levels=st.lists(st.floats(0, 1), min_size=1, max_size=5),
    seed=st.integers(0, 2**32 - 1),
)
def test_quantiles_are_those_of_what_was_seen(repeats, gaps, levels, seed):
    rng = np.random.default_rng(seed)
    samples = rng.normal(size=(2, 3, 4, repeats)).astype(np.float32)
    samples[rng.random(samples.shape) < gaps] = np.nan
    found = lags.quantiles(torch.from_numpy(samples), levels).numpy()
    seen = ~np.isnan(samples).all(-1)
    assert found.shape == (2, 3, 4, len(levels))
    assert np.isnan(found[~seen]).all()
    if not seen.any():
        return
    expected = np.nanquantile(samples[seen].astype(np.float64), levels, axis=-1).T
    np.testing.assert_allclose(found[seen], expected, rtol=0, atol=1e-5)


@given(
    st.lists(st.one_of(st.floats(-1e3, 1e3, width=32), st.just(float("nan"))), max_size=30),
    st.lists(st.floats(0, 1), min_size=1, max_size=4),
)
def test_quantiles_over_repeats_are_those_of_the_samples_seen(samples, levels):
    repeats = torch.tensor(samples, dtype=torch.float64).reshape(1, 1, 1, -1)
    if repeats.shape[-1] == 0:
        return
    found = lags.quantiles(repeats, levels)[0, 0, 0]
    seen = repeats[~torch.isnan(repeats)]
    if len(seen):
        expected = torch.quantile(seen, torch.tensor(levels, dtype=torch.float64))
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    else:
        assert torch.isnan(found).all()
