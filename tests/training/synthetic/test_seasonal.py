"""Seasonal cells: days repeat, weekends differ, what is planned shows, all on the UTC clock."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from training.synthetic.planned import DAYS_BEFORE, Planned
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
def test_a_day_ago_says_more_than_half_a_day_ago(unplanned, step_ms, held_out):
    day = DAY_MS // step_ms
    clock = _clock(200, 14 * day, step_ms)
    series = seasonal_cells(np.random.default_rng(1), clock, unplanned(clock), held_out)
    assert np.median(_lag_correlation(series, day)) > 0.35
    assert np.median(_lag_correlation(series, day // 2)) < 0.1


def test_activity_is_finite_not_negative_and_of_mean_one(unplanned):
    clock = _clock(100, 500, HOUR_MS)
    series = seasonal_cells(np.random.default_rng(1), clock, unplanned(clock), held_out=False)
    assert series.dtype == np.float32
    assert np.isfinite(series).all()
    assert (series >= 0.0).all()
    np.testing.assert_allclose(series.mean(axis=1), 1.0, rtol=1e-3)


def test_quiet_hours_lie_in_the_utc_night_on_average(unplanned):
    # Starts are spread over the week, so that this holds only if seasons hang on the clock.
    clock = _clock(500, 24 * 10, HOUR_MS)
    series = seasonal_cells(np.random.default_rng(2), clock, unplanned(clock), held_out=False)
    hour = (clock.start_ms[:, None] // HOUR_MS + np.arange(clock.length)) % 24
    by_hour = np.array([np.median(series[hour == h]) for h in range(24)])
    assert by_hour[2:5].mean() < 0.75 * by_hour[10:20].mean()


def test_weekends_differ_from_working_days_in_most_cells(unplanned):
    clock = _clock(200, 24 * 7 * 8, HOUR_MS)
    series = seasonal_cells(np.random.default_rng(3), clock, unplanned(clock), held_out=False)
    week = np.median(_lag_correlation(series, 24 * 7))
    three_days = np.median(_lag_correlation(series, 24 * 3))
    assert week > three_days


def test_daily_data_keeps_its_weekdays(unplanned):
    starts = draw_starts(np.random.default_rng(0), 300, DAY_MS)
    clock = Clock(Regime.DAY, DAY_MS, starts, 400)
    series = seasonal_cells(np.random.default_rng(4), clock, unplanned(clock), held_out=False)
    week, half_week = _lag_correlation(series, 7), _lag_correlation(series, 4)
    assert np.mean(week > half_week) > 0.7


def _loads(planned: Planned, clock: Clock) -> np.ndarray:
    return seasonal_cells(np.random.default_rng(8), clock, planned, held_out=False)


def test_holidays_run_as_weekends_and_only_they_differ_from_the_same_days_without(unplanned):
    clock = Clock(Regime.HOUR, HOUR_MS, np.full(300, 20_000 * DAY_MS), 24 * 28)  # a Wednesday
    plain = unplanned(clock)
    days = np.zeros_like(plain.holidays)
    days[:, DAYS_BEFORE + 14] = True
    before, after = _loads(plain, clock), _loads(replace(plain, holidays=days), clock)
    ratio = np.log((after + 1e-6) / (before + 1e-6)).reshape(300, 28, 24)
    changed = np.abs(ratio - np.median(ratio, axis=(1, 2), keepdims=True)).mean(axis=(0, 2))
    assert changed[14] > 0.1
    assert np.delete(changed, [13, 14, 15]).max() < 0.1 * changed[14]
    takes_notice = np.abs(ratio[:, 14] - np.median(ratio, axis=(1, 2))[:, None]).max(axis=1) > 1e-3
    assert 0.6 < takes_notice.mean() < 0.9


def test_events_raise_the_load_of_most_cells_while_they_last(unplanned):
    clock = Clock(Regime.HOUR, HOUR_MS, np.full(300, 20_000 * DAY_MS), 24 * 14)
    plain = unplanned(clock)
    load = np.zeros_like(plain.event_load)
    load[:, 200:203] = 1
    before, after = _loads(plain, clock), _loads(replace(plain, event_load=load), clock)
    usual = np.median((after / np.maximum(before, 1e-6))[:, :200], axis=1, keepdims=True)
    ratio = (after / np.maximum(before * usual, 1e-6))[(before > 1e-3).all(axis=1)]
    gain = ratio[:, 200:203].mean(axis=1)
    assert (gain > 1.1).mean() > 0.55
    assert 0.03 < (gain < 0.9).mean() < 0.2  # a closed street
    assert np.median(ratio[:, 210:]) == pytest.approx(1, abs=0.02)


def test_big_sites_are_calmer_than_the_others(unplanned):
    clock = _clock(600, 24 * 28, HOUR_MS)
    series = seasonal_cells(np.random.default_rng(9), clock, unplanned(clock), held_out=False)
    day = series.reshape(600, 28, 24)
    noise = (np.abs(day[:, 7:] - day[:, :-7]).mean(axis=(1, 2))) / series.mean(axis=1)
    assert np.percentile(noise, 5) < 0.2 * np.median(noise) or np.percentile(noise, 5) < 0.15


def test_noise_of_many_cells_lasts_for_a_few_samples(unplanned):
    clock = _clock(400, 24 * 28, HOUR_MS)
    series = seasonal_cells(np.random.default_rng(10), clock, unplanned(clock), held_out=False)
    log = np.log(series + 0.05).reshape(400, 28, 24)
    residual = (log - log.mean(axis=1, keepdims=True)).reshape(400, -1)
    assert 0.15 < np.median(_lag_correlation(np.expm1(residual - residual.min()), 1)) < 0.9
