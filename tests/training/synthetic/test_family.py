"""Families: proportions as stated, and what each family promises about its series."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from training.synthetic.family import (
    MIXTURE,
    WEEKLY_MIXTURE,
    Family,
    draw_activity,
    draw_families,
)
from training.synthetic.planned import draw_planned
from training.synthetic.timing import (
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
    WEEK_MS,
    Clock,
    Regime,
    draw_starts,
)

STEP_MS = {
    Regime.HOUR: HOUR_MS,
    Regime.MINUTE: 5 * MINUTE_MS,
    Regime.SECOND: 2 * SECOND_MS,
    Regime.DAY: WEEK_MS,
}


def _activity(family: Family, regime: Regime, rows: int = 120, length: int = 400) -> np.ndarray:
    rng = np.random.default_rng(7)
    step_ms = STEP_MS[regime]
    starts = draw_starts(rng, rows, step_ms)
    planned = draw_planned(rng, regime, step_ms, starts, length)
    clock = Clock(regime, step_ms, starts, length)
    return draw_activity(rng, clock, planned, np.full(rows, family.value), held_out=False)


@pytest.mark.parametrize("regime", list(MIXTURE))
def test_families_come_in_the_stated_shares(regime):
    draws = 5_000
    drawn = draw_families(np.random.default_rng(0), draws, regime, MINUTE_MS)
    counts = Counter(drawn.tolist())
    assert sum(MIXTURE[regime].values()) == pytest.approx(1.0)
    for family in Family:
        share = MIXTURE[regime].get(family, 0.0)
        assert counts[family.value] / draws == pytest.approx(share, abs=0.025)


def test_weekly_data_has_no_seasonal_cells():
    drawn = draw_families(np.random.default_rng(0), 500, Regime.DAY, WEEK_MS)
    assert set(drawn.tolist()) == {family.value for family in WEEKLY_MIXTURE}


@pytest.mark.parametrize("regime", list(Regime))
@pytest.mark.parametrize("family", list(Family))
def test_activity_is_finite_and_not_negative(family, regime):
    series = _activity(family, regime, rows=40, length=300)
    assert series.dtype == np.float32
    assert np.isfinite(series).all()
    assert (series >= 0.0).all()


def test_bursts_are_idle_for_much_of_the_time_and_far_above_their_mean_in_some():
    series = _activity(Family.BURSTS, Regime.SECOND)
    assert np.mean(series == 0.0) > 0.15
    assert np.median(series.max(axis=1)) > 3.0


def test_bursts_last_by_the_clock_in_seconds(unplanned):
    rng = np.random.default_rng(0)
    starts = draw_starts(rng, 200, SECOND_MS)
    families = np.full(200, Family.BURSTS.value)
    smoothness = []
    for step_ms in (SECOND_MS, 10 * SECOND_MS):
        clock = Clock(Regime.SECOND, step_ms, starts, 500)
        series = draw_activity(
            np.random.default_rng(1), clock, unplanned(clock), families, held_out=False
        )
        busy = series > series.mean(axis=1, keepdims=True)
        smoothness.append(np.mean(busy[:, 1:] == busy[:, :-1]))
    assert smoothness[0] > smoothness[1] + 0.03


def test_sessions_hold_a_rate():
    series = _activity(Family.SESSIONS, Regime.SECOND)
    moves = np.abs(np.diff(series, axis=1)) < 0.25 * np.maximum(series[:, 1:], 0.05)
    assert moves.mean() > 0.75


def test_walks_remember_the_sample_before():
    series = _activity(Family.WALKS, Regime.MINUTE).astype(np.float64)
    correlations = [np.corrcoef(row[:-1], row[1:])[0, 1] for row in series]
    assert np.median(correlations) > 0.8


def test_degenerate_series_include_zeros_and_constants():
    series = _activity(Family.DEGENERATE, Regime.HOUR, rows=300)
    assert (series.max(axis=1) == 0.0).mean() > 0.03
    assert ((series.std(axis=1) == 0.0) & (series.mean(axis=1) > 0.0)).mean() > 0.03


def test_seasons_are_never_mixed_with_seasons_of_another_clock(unplanned):
    rng = np.random.default_rng(0)
    clock = Clock(Regime.HOUR, HOUR_MS, draw_starts(rng, 30, HOUR_MS), 100)
    seasonal = np.full(30, Family.SEASONAL.value)
    # With no other family to mix with, every series is a cell of its own and has mean 1.
    alone = draw_activity(
        np.random.default_rng(1), clock, unplanned(clock), seasonal, held_out=False
    )
    np.testing.assert_allclose(alone.mean(axis=1), 1.0, rtol=1e-3)
