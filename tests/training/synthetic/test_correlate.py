"""KPIs of one cell: related on the whole, delayed at times, a fifth of them strangers."""

from __future__ import annotations

import numpy as np
import pytest

from training.synthetic.correlate import congestion, correlate
from training.synthetic.filters import autoregressive


def _activity(cells: int, kpis: int, length: int) -> np.ndarray:
    ratio = np.full(cells * kpis, 0.9, dtype=np.float32)
    noise = np.exp(0.5 * autoregressive(np.random.default_rng(0), length, ratio))
    return np.asarray(noise.reshape(cells, kpis, length), dtype=np.float32)


def test_the_first_kpi_is_the_activity_itself():
    activity = _activity(20, 3, 200)
    out = correlate(np.random.default_rng(1), activity)
    np.testing.assert_array_equal(out[:, 0], activity[:, 0])
    assert out.shape == activity.shape
    assert (out >= 0.0).all()


def test_a_fifth_of_the_other_kpis_stays_unrelated():
    activity = _activity(600, 2, 60)
    out = correlate(np.random.default_rng(1), activity)
    same = (out[:, 1] == activity[:, 1]).all(axis=1)
    assert same.mean() == pytest.approx(0.2, abs=0.05)


def test_related_kpis_correlate_and_strangers_do_not():
    activity = _activity(200, 2, 600)
    before = [abs(np.corrcoef(cell)[0, 1]) for cell in activity]
    after = [abs(np.corrcoef(cell)[0, 1]) for cell in correlate(np.random.default_rng(1), activity)]
    assert np.median(before) < 0.2
    assert np.median(after) > 0.6


def test_some_kpis_lead_and_some_follow():
    activity = _activity(400, 2, 600).astype(np.float64)
    out = correlate(np.random.default_rng(1), activity.astype(np.float32))
    lags = []
    for driver, view in out:
        by_lag = {
            lag: np.corrcoef(driver[10:-10], view[10 + lag : 590 + lag])[0, 1]
            for lag in range(-8, 9)
        }
        lags.append(max(by_lag, key=by_lag.__getitem__))
    best = np.array(lags)
    assert (best == 0).mean() > 0.4
    assert (best > 2).mean() > 0.03
    assert (best < -2).mean() > 0.03


def test_one_kpi_has_nothing_to_correlate_with():
    activity = _activity(5, 1, 50)
    np.testing.assert_array_equal(correlate(np.random.default_rng(1), activity), activity)


def test_congestion_grows_with_activity_and_is_bounded():
    driver = _activity(50, 1, 300)[:, 0]
    full = congestion(np.random.default_rng(2), driver)
    assert full.max() <= 1.5
    for row, activity in zip(full, driver, strict=True):
        order = np.argsort(activity)
        assert (np.diff(row[order]) >= 0.0).all()


def test_a_silent_cell_is_not_congested():
    silent = np.zeros((3, 20), dtype=np.float32)
    assert (congestion(np.random.default_rng(2), silent) == 0.0).all()
