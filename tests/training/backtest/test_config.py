"""Origins lie in the test part, what is learnt from before them, settings make sense."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from training.backtest import BacktestConfig, lead_buckets, origins_of, training_part
from training.errors import DataError

CONFIG = BacktestConfig(horizon=12, test_ratio=0.5, levels=(0.1, 0.5, 0.9))


def test_origins_lie_in_the_test_part_and_leave_room_for_the_horizon(make_window):
    window = make_window(steps=100)
    origins = origins_of(window, replace(CONFIG, stride=7))
    assert origins[0] == 50
    assert origins[-1] + CONFIG.horizon <= 100
    assert set(np.diff(origins)) == {7}


def test_at_most_so_many_origins_spread_evenly(make_window):
    origins = origins_of(make_window(), replace(CONFIG, stride=1, max_origins=5))
    assert len(origins) == 5
    assert origins[0] == 200
    assert origins[-1] == 388


@pytest.mark.parametrize("horizon", [1, 2, 7, 24, 192])
def test_lead_buckets_cover_the_horizon_without_overlap(horizon):
    buckets = lead_buckets(horizon)
    leads = [lead for first, last in buckets for lead in range(first, last + 1)]
    assert leads == list(range(1, horizon + 1))
    assert len(buckets) <= 8


@pytest.mark.parametrize("ratio", [0.05, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("horizon", [1, 12, 24, 192])
def test_as_many_samples_as_it_asks_for_are_enough(make_window, horizon, ratio):
    config = BacktestConfig(horizon=horizon, test_ratio=ratio)
    assert origins_of(make_window(steps=config.enough_steps), config)


@pytest.mark.parametrize(
    "change",
    [
        {"horizon": 0},
        {"test_ratio": 0.0},
        {"test_ratio": 1.0},
        {"stride": 0},
        {"stride": -1},
        {"max_origins": 0},
    ],
)
def test_impossible_settings_are_refused(change):
    with pytest.raises(DataError, match="expected"):
        replace(CONFIG, **change)


@pytest.mark.parametrize("steps", [30, 45, 100, 399])
def test_what_is_learnt_from_ends_before_the_first_origin(make_window, steps):
    window = make_window(steps=steps)
    part = training_part(window, CONFIG)
    origins = origins_of(window, CONFIG)
    assert part.steps == (origins[0] if origins else round(steps / 2))
    np.testing.assert_array_equal(part.values, window.values[:, : part.steps])


def test_coverage_promised_is_the_distance_of_the_outer_levels():
    assert CONFIG.nominal_coverage == pytest.approx(0.8)
