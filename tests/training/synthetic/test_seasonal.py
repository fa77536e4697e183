"""Seasonal cells: days repeat, weekends differ, stadiums have evenings, all on the UTC clock."""

from __future__ import annotations

import numpy as np
import pytest

from training.synthetic.seasonal import seasonal_cells
from training.synthetic.timing import DAY_MS, HOUR_MS, MINUTE_MS, Clock, Regime, draw_starts


def _clock(rows: int, length: int, step_ms: int, seed: int = 0) -> Clock:
    starts = draw_starts(np.random.default_rng(seed), rows, step_ms)
    return Clock(Regime.HOUR, step_ms, starts, length)


def _lag_correlation(series: np.ndarray, lag: int) -> np.ndarray:
    log = np.log1p(series.astype(np.float64))
    early, late = log[:, :-lag], log[:, lag:]
    early = early - early.mean(axis=1, keepdims=True)
    late = late - late.mean(axis=1, keepdims=True)
    norm = np.sqrt((early**2).sum(axis=1) * (late**2).sum(axis=1))
    return np.asarray((early * late).sum(axis=1) / norm)


@pytest.mark.parametrize(("step_ms", "held_out"), [(HOUR_MS, False), (20 * MINUTE_MS, True)])
def test_a_day_ago_says_more_than_half_a_day_ago(step_ms, held_out):
    day = DAY_MS // step_ms
    clock = _clock(200, 14 * day, step_ms)
    series = seasonal_cells(np.random.default_rng(1), clock, held_out)
    assert np.median(_lag_correlation(series, day)) > 0.35
    assert np.median(_lag_correlation(series, day // 2)) < 0.1


def test_activity_is_finite_not_negative_and_of_mean_one():
    series = seasonal_cells(np.random.default_rng(1), _clock(100, 500, HOUR_MS), held_out=False)
    assert series.dtype == np.float32
    assert np.isfinite(series).all()
    assert (series >= 0.0).all()
    np.testing.assert_allclose(series.mean(axis=1), 1.0, rtol=1e-3)


def test_quiet_hours_lie_in_the_utc_night_on_average():
    # Starts are spread over the week, so that this holds only if seasons hang on the clock.
    clock = _clock(500, 24 * 10, HOUR_MS)
    series = seasonal_cells(np.random.default_rng(2), clock, held_out=False)
    hour = (clock.start_ms[:, None] // HOUR_MS + np.arange(clock.length)) % 24
    by_hour = np.array([np.median(series[hour == h]) for h in range(24)])
    assert by_hour[2:5].mean() < 0.75 * by_hour[10:20].mean()


def test_weekends_differ_from_working_days_in_most_cells():
    clock = _clock(200, 24 * 7 * 8, HOUR_MS)
    series = seasonal_cells(np.random.default_rng(3), clock, held_out=False)
    week = np.median(_lag_correlation(series, 24 * 7))
    three_days = np.median(_lag_correlation(series, 24 * 3))
    assert week > three_days


def test_daily_data_keeps_its_weekdays():
    starts = draw_starts(np.random.default_rng(0), 300, DAY_MS)
    clock = Clock(Regime.DAY, DAY_MS, starts, 400)
    series = seasonal_cells(np.random.default_rng(4), clock, held_out=False)
    week, half_week = _lag_correlation(series, 7), _lag_correlation(series, 4)
    assert np.mean(week > half_week) > 0.7
