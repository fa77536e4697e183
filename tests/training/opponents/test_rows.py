"""Rows of a direct regression: relative to the level, bounded, and blind to the future."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.opponents.rows import RowPlan

HOUR_MS = 3_600_000


@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize("step_ms", [250, 1000, 60_000, 900_000, HOUR_MS, 86_400_000, 604_800_000])
def test_any_step_has_rows(step_ms, extended):
    plan = RowPlan(step_ms, 7, extended)
    context = np.random.default_rng(0).random((3, plan.context_steps))
    rows, level = plan.rows(context, [0, 1, 2], "Europe/Madrid", 0.1)
    assert rows.shape == (3, 7, plan.features)
    assert np.isfinite(rows).all()
    np.testing.assert_allclose(level, context.mean(axis=1) + 0.1)


def test_more_features_where_they_are_wanted():
    assert RowPlan(HOUR_MS, 24, extended=True).features > RowPlan(HOUR_MS, 24).features + 10


@settings(max_examples=15)
@given(st.floats(0.01, 1e4), st.booleans())
def test_scaling_a_window_changes_only_its_level(factor, extended):
    plan = RowPlan(HOUR_MS, 5, extended)
    context = 1 + np.random.default_rng(0).random((2, plan.context_steps))
    rows, level = plan.rows(context, [0, HOUR_MS], "UTC", 0.5)
    scaled, scaled_level = plan.rows(context * factor, [0, HOUR_MS], "UTC", 0.5 * factor)
    np.testing.assert_allclose(scaled[..., :-1], rows[..., :-1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(scaled_level, level * factor)


def test_the_day_and_week_before_stand_in_the_row():
    plan = RowPlan(HOUR_MS, 30)
    context = np.arange(plan.context_steps, dtype=np.float64)[None]
    rows, level = plan.rows(context, [0], "UTC", 1.0)
    steps = plan.context_steps
    for ahead in (0, 5, 23, 24, 29):
        values = rows[0, ahead] * level[0]
        for period in (24, 168):
            expected = steps - period + ahead % period
            assert np.isclose(values, expected, atol=0.5).any(), (ahead, period)


def test_histories_shorter_than_the_context_leave_holes_not_inventions():
    plan = RowPlan(HOUR_MS, 3, extended=True)
    context = np.full((2, plan.context_steps), np.nan)
    context[0, -40:] = 5.0
    rows, level = plan.rows(context, [0, 0], "UTC", 1.0)
    assert level.tolist() == [6.0, 1.0]
    assert np.isnan(rows[0]).any()
    assert np.nanmax(rows[0, :, 0]) == pytest.approx(5 / 6)


def test_hour_and_weekday_are_local():
    monday_noon_ms = 1_767_614_400_000 - HOUR_MS  # 2026-01-05T11:00Z, noon in Madrid
    plan = RowPlan(HOUR_MS, 1)
    context = np.ones((1, plan.context_steps))
    here = plan.rows(context, [monday_noon_ms], "Europe/Madrid", 1.0)[0][0, 0]
    there = plan.rows(context, [monday_noon_ms], "Asia/Tokyo", 1.0)[0][0, 0]
    changed = np.flatnonzero(here != there)
    assert here[changed].tolist() == [12.0]
    assert there[changed].tolist() == [20.0]
