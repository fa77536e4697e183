"""Gaps: where they lie, how many there are, and what they never take away."""

from __future__ import annotations

import numpy as np
import pytest

from training.synthetic.faults import OUTAGE_SHARE, TRAILING_SHARE, add_faults

CELLS, KPIS, HISTORY, HORIZON, CONTEXT, DAY = 3_000, 2, 320, 48, 192, 24


@pytest.fixture(scope="module")
def clean() -> np.ndarray:
    return np.ones((CELLS, KPIS, HISTORY + HORIZON), dtype=np.float32)


@pytest.fixture(scope="module")
def faulty(clean) -> np.ndarray:
    lower = np.zeros((CELLS, KPIS), dtype=np.float32)
    lower[:, 1] = -np.inf
    return add_faults(
        np.random.default_rng(0),
        clean,
        lower,
        context_steps=CONTEXT,
        horizon=HORIZON,
        day_steps=DAY,
    )


def test_clean_values_are_left_alone(clean, faulty):
    assert (clean == 1.0).all()
    assert set(np.unique(faulty[np.isfinite(faulty)])) == {0.0, 1.0}


def test_most_cells_report_everything_or_nearly(faulty):
    missing = np.isnan(faulty[:, 0]).mean(axis=1)
    assert 0.35 < (missing == 0.0).mean() < 0.7


def test_a_lost_file_takes_all_kpis_with_it(faulty):
    gaps = np.isnan(faulty)
    agree = (gaps[:, 0] == gaps[:, 1]).all(axis=1)
    assert agree.mean() > 0.85
    assert agree.mean() < 1.0


def test_outages_are_zeros_only_where_zero_is_the_limit(faulty):
    down = (faulty == 0.0).any(axis=2)
    assert down[:, 0].mean() == pytest.approx(OUTAGE_SHARE, abs=0.05)
    assert not down[:, 1].any()


def test_outages_are_densest_where_the_lags_of_the_horizon_lie(faulty):
    down = (faulty[:, 0] == 0.0).mean(axis=0)
    usual = down[: HISTORY // 3].mean()
    a_day_ago, a_week_ago = (
        down[HISTORY - days * DAY : HISTORY - (days - 1) * DAY].mean() for days in (1, 7)
    )
    assert a_day_ago > 1.5 * usual > 0
    assert a_week_ago > 1.5 * usual
    # Not so dense that the model learns to expect zeros.
    assert down[HISTORY + DAY :].mean() < 0.03


def test_where_a_day_is_longer_than_the_history_outages_are_as_long_as_they_were():
    clean = np.ones((300, 1, 120), dtype=np.float32)
    faulty = add_faults(
        np.random.default_rng(0),
        clean,
        np.zeros((300, 1), dtype=np.float32),
        context_steps=64,
        horizon=16,
        day_steps=86_400,
    )
    down = (faulty == 0.0).sum(axis=2)
    assert 0 < down.max() <= 16


def test_late_files_end_at_the_origin(faulty):
    gaps = np.isnan(faulty).all(axis=1)
    late = gaps[:, HISTORY - 1] & ~gaps[:, HISTORY]
    assert late.mean() == pytest.approx(TRAILING_SHARE, abs=0.04)
    longest = gaps[:, HISTORY - 40 : HISTORY].all(axis=1)
    assert longest.mean() < 0.01


def test_new_cells_have_no_early_samples(faulty):
    gaps = np.isnan(faulty).all(axis=1)
    new = gaps[:, :40].all(axis=1)
    assert 0.08 < new.mean() < 0.2
    assert gaps[new, HISTORY:].mean() < 0.1


def test_the_future_has_gaps_too(faulty):
    assert 0.01 < np.isnan(faulty[:, :, HISTORY:]).mean() < 0.08


def test_every_kpi_keeps_samples_in_its_context(faulty):
    seen = np.isfinite(faulty[:, :, HISTORY - CONTEXT : HISTORY]).sum(axis=2)
    assert seen.min() >= 8
