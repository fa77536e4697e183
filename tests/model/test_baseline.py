"""The seasonal baseline finds the season, knows its errors and answers everything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from model.baseline import SeasonalBaseline
from model.errors import HorizonError, LevelError, ModelError
from model.predictor import Rung
from model.seasonal_rules import apply_rule, past_errors, seasonal_rules

LEVELS = (0.1, 0.5, 0.9)
HOUR_MS = 3_600_000


@pytest.fixture
def baseline(catalogue):
    return SeasonalBaseline(catalogue)


def test_a_daily_cell_is_forecast_by_its_days(baseline, make_window):
    window = make_window(steps=24 * 10)
    (forecast,) = baseline.predict([window], 24, LEVELS)
    truth = 50 + 30 * np.sin(2 * np.pi * np.arange(24) / 24)
    assert np.abs(forecast.values[0, :, 1] - truth).max() < 8
    assert forecast.rung is Rung.BASELINE


def test_a_weekly_cell_is_forecast_by_its_weeks(baseline, make_window):
    window = make_window(steps=24 * 28)
    day = np.arange(24 * 28) // 24 % 7
    weekly = replace(window, values=(window.values + 100 * (day >= 5)).astype(np.float32))
    (forecast,) = baseline.predict([weekly], 24 * 7, LEVELS)
    assert forecast.values[0, 24 * 5 + 12, 1] > 120
    assert forecast.values[0, 12, 1] < 90


def test_coverage_on_noise_is_about_what_the_levels_say(baseline, make_window):
    inside = []
    for seed in range(30):
        window = make_window(seed, steps=24 * 11)
        past = replace(window, values=window.values[:, : 24 * 10])
        (forecast,) = baseline.predict([past], 24, LEVELS)
        coming = window.values[0, 24 * 10 :]
        inside.append((coming >= forecast.values[0, :, 0]) & (coming <= forecast.values[0, :, 2]))
    assert 0.7 < np.mean(inside) < 0.9


def test_a_random_walk_gets_wider_with_the_lead(baseline, make_window):
    window = make_window(steps=600, step_ms=1_000)
    walk = np.cumsum(np.random.default_rng(0).normal(size=600)).astype(np.float32)
    (forecast,) = baseline.predict([replace(window, values=walk[None])], 60, LEVELS)
    width = forecast.values[0, :, 2] - forecast.values[0, :, 0]
    assert width[-1] > 3 * width[0]


def test_limits_hold_and_quantiles_ascend(baseline, make_window):
    window = make_window(steps=240, kpis=("Percent",))
    window = replace(window, values=window.values * 1.4 - 20)
    (forecast,) = baseline.predict([window], 48, (0.05, 0.5, 0.95))
    assert forecast.values.min() >= 0
    assert forecast.values.max() <= 100
    assert (np.diff(forecast.values, axis=-1) >= 0).all()


@pytest.mark.parametrize("steps", [1, 5, 30])
def test_a_short_history_is_answered_wide(baseline, make_window, steps):
    (forecast,) = baseline.predict([make_window(steps=steps)], 12, LEVELS)
    assert np.isfinite(forecast.values).all()
    assert (forecast.values[..., 2] > forecast.values[..., 0]).all()


def test_nothing_seen_is_answered_by_the_limits(baseline, make_window):
    window = make_window(kpis=("Percent", "Free"))
    silent = replace(window, values=np.full_like(window.values, np.nan))
    (forecast,) = baseline.predict([silent], 2, LEVELS)
    np.testing.assert_allclose(forecast.values[0], [[10, 50, 90]] * 2)
    assert np.isnan(forecast.values[1]).all()
    assert forecast.context.newest_ms is None


def test_gaps_do_not_disturb(baseline, make_window):
    window = make_window(steps=24 * 10)
    values = window.values.copy()
    values[:, 24 * 7 : 24 * 8] = np.nan
    values[:, -3:] = np.nan
    (forecast,) = baseline.predict([replace(window, values=values)], 24, LEVELS)
    assert np.isfinite(forecast.values).all()
    assert forecast.context.newest_ms == window.end_ms - 3 * HOUR_MS


def test_rules_need_two_periods():
    assert [rule.name for rule in seasonal_rules(HOUR_MS, 47)] == ["last value"]
    assert [rule.name for rule in seasonal_rules(HOUR_MS, 48)] == ["last value", "daily mean"]
    assert len(seasonal_rules(HOUR_MS, 24 * 14)) == 3
    assert len(seasonal_rules(7 * 24 * HOUR_MS, 1000)) == 1


def test_past_errors_never_use_the_future():
    rule = seasonal_rules(HOUR_MS, 100)[0]
    series = np.arange(10.0)[None]
    np.testing.assert_array_equal(past_errors(rule, series, 3)[0], [np.nan] * 3 + [3.0] * 7)
    assert np.isnan(past_errors(rule, series, 10)).all()


def test_the_last_value_is_held():
    rule = seasonal_rules(HOUR_MS, 10)[0]
    np.testing.assert_array_equal(apply_rule(rule, np.array([[1.0, 7.0]]), 3), [[7, 7, 7]])


def test_bad_horizons_and_levels_are_refused(baseline, make_window):
    with pytest.raises(HorizonError):
        baseline.predict([make_window()], 0, LEVELS)
    with pytest.raises(HorizonError, match=str(baseline.max_horizon)):
        baseline.predict([make_window()], baseline.max_horizon + 1, LEVELS)
    with pytest.raises(LevelError):
        baseline.predict([make_window()], 3, (0.001,))


def test_a_single_rule_can_be_asked_for(catalogue, make_window):
    naive = SeasonalBaseline(catalogue, ("daily naive",))
    window = make_window(steps=24 * 5)
    (forecast,) = naive.predict([window], 24, (0.5,))
    error = forecast.values[0, :, 0] - window.values[0, -24:]
    assert np.ptp(error) < 1e-4
    assert naive.identity.name == "daily naive"


def test_a_window_too_short_for_every_rule_gets_its_last_value(catalogue, make_window):
    naive = SeasonalBaseline(catalogue, ("weekly naive",))
    window = make_window(steps=100)
    (forecast,) = naive.predict([window], 4, (0.5,))
    assert np.ptp(forecast.values) < 10
    assert forecast.values[0, 0, 0] == pytest.approx(window.values[0, -1], abs=5)


def test_an_unknown_rule_is_refused_with_the_known_ones(catalogue):
    with pytest.raises(ModelError, match="daily naive"):
        SeasonalBaseline(catalogue, ("lunar",))


def test_the_rule_is_judged_in_the_middle_of_the_horizon(baseline, make_window):
    quarter_hours = make_window(steps=96 * 10, step_ms=900_000)
    quarter = np.arange(96 * 10)
    level = np.random.default_rng(0).normal(0, 4, 10)[quarter // 96]
    smooth = 50 + 30 * np.sin(2 * np.pi * quarter / 96) + level  # one step ahead, nothing moves
    window = replace(quarter_hours, values=smooth[None].astype(np.float32))
    (forecast,) = baseline.predict([window], 48, LEVELS)
    truth = 50 + 30 * np.sin(2 * np.pi * np.arange(48) / 96)
    assert np.abs(forecast.values[0, :, 1] - truth).max() < 10


def test_samples_that_never_lie_a_doubling_apart_still_give_errors(baseline, make_window):
    window = make_window(steps=600, step_ms=1_000)
    sparse = np.full_like(window.values, np.nan)
    sparse[:, ::12] = window.values[:, ::12]
    (forecast,) = baseline.predict([replace(window, values=sparse)], 23, LEVELS)
    assert np.isfinite(forecast.values).all()


def test_values_at_the_edge_of_what_a_float_holds_are_answered_finite(baseline, make_window):
    window = make_window(steps=5)
    huge = np.array([[3e38, -3e38, 3e38, -3e38, 3e38]], dtype=np.float32)
    (forecast,) = baseline.predict([replace(window, values=huge)], 4, LEVELS)
    assert np.isfinite(forecast.values).all()
