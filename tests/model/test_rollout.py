"""Horizons beyond one pass: stretch after stretch, ever wider, within limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from model.errors import HorizonError, LevelError
from model.rollout import MOST_STRETCHES, Rollout


@pytest.fixture
def rollout(predictor, catalogue) -> Rollout:
    return Rollout(predictor, catalogue)


def test_a_horizon_of_one_pass_is_the_forecaster_s_own_answer(rollout, predictor, make_window):
    window, most = make_window(), predictor.max_horizon
    (ours,) = rollout.predict([window], most, (0.1, 0.9))
    (own,) = predictor.predict([window], most, (0.1, 0.9))
    np.testing.assert_array_equal(ours.values, own.values)


def test_a_longer_horizon_begins_with_the_one_pass_answer(rollout, predictor, make_window):
    window, most = make_window(kpis=("Free", "Percent")), predictor.max_horizon
    (long,) = rollout.predict([window], 2 * most + 5, (0.1, 0.5, 0.9))
    (own,) = predictor.predict([window], most, (0.1, 0.5, 0.9))
    assert long.values.shape == (2, 2 * most + 5, 3)
    np.testing.assert_allclose(long.values[:, :most], own.values, rtol=1e-6)
    assert long.start_ms == own.start_ms
    assert long.context == own.context


def test_a_further_stretch_is_at_least_as_wide_as_the_end_of_the_one_before(
    rollout, predictor, make_window
):
    window, most = make_window(), predictor.max_horizon
    (forecast,) = rollout.predict([window], MOST_STRETCHES * most, (0.1, 0.5, 0.9))
    width = forecast.values[0, :, 2] - forecast.values[0, :, 0]
    for begin in range(most, MOST_STRETCHES * most, most):
        assert (width[begin : begin + most] >= width[begin - 1] * (1 - 1e-5)).all()


def test_quantiles_ascend_and_stay_within_limits(rollout, predictor, make_window):
    window = make_window(kpis=("Percent", "Volume"))
    (forecast,) = rollout.predict([window], 4 * predictor.max_horizon, (0.05, 0.3, 0.7, 0.95))
    assert (np.diff(forecast.values, axis=-1) >= 0).all()
    assert forecast.values.min() >= 0
    assert forecast.values[0].max() <= 100


def test_levels_need_not_hold_the_median(rollout, predictor, make_window):
    (forecast,) = rollout.predict([make_window()], predictor.max_horizon + 1, (0.2, 0.8))
    assert forecast.levels == (0.2, 0.8)
    assert forecast.values.shape[-1] == 2


def test_a_silent_kpi_stays_unknown(rollout, predictor, make_window):
    window = make_window(kpis=("Free", "Percent"))
    window.values[0] = np.nan
    (forecast,) = rollout.predict([window], predictor.max_horizon + 3, (0.1, 0.9))
    assert np.isnan(forecast.values[0]).all()
    assert np.isfinite(forecast.values[1]).all()


def test_a_silent_kpi_does_not_move_the_others(rollout, predictor, make_window):
    window = make_window(kpis=("Free", "Percent"))
    window.values[1] = np.nan
    alone = replace(window, kpis=("Free",), values=window.values[:1])
    beside, without = (
        rollout.predict([each], 3 * predictor.max_horizon, (0.1, 0.9))[0].values[0]
        for each in (window, alone)
    )
    np.testing.assert_allclose(beside, without, rtol=1e-4, atol=1e-2)


def test_a_horizon_out_of_range_is_refused_with_the_range(rollout, make_window):
    with pytest.raises(HorizonError, match=f"1 to {rollout.max_horizon} steps"):
        rollout.predict([make_window()], rollout.max_horizon + 1, (0.1, 0.9))


@pytest.mark.parametrize("levels", [(), (0.9, 0.1), (0.1, 0.1), (0.01, 0.5)])
def test_levels_are_refused_as_in_one_pass(rollout, predictor, make_window, levels):
    for horizon in (predictor.max_horizon, predictor.max_horizon + 1):
        with pytest.raises(LevelError):
            rollout.predict([make_window()], horizon, levels)
