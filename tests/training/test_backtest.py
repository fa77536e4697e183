"""Backtests look only back, count every origin once and tell who was better."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from model.baseline import SeasonalBaseline
from model.predictor import ContextSpan, Forecast, ModelIdentity, Rung
from training.backtest import BacktestConfig, backtest, lead_buckets, origins_of
from training.errors import DataError

CONFIG = BacktestConfig(horizon=12, test_ratio=0.5, levels=(0.1, 0.5, 0.9))


class Clairvoyant:
    """Knows the whole recording; shows that targets line up with forecasts."""

    max_horizon = 1000
    level_range = (0.0, 1.0)

    def __init__(self, windows, name="clairvoyant"):
        self.identity = ModelIdentity(name, "1", "")
        self.windows = {window.cell: window for window in windows}
        self.seen = []

    def predict(self, windows, horizon, levels):
        self.seen += windows
        answers = []
        for window in windows:
            whole = self.windows[window.cell]
            future = whole.values[:, window.steps : window.steps + horizon]
            values = np.repeat(future[..., None], len(levels), axis=-1)
            span = ContextSpan(window.start_ms, window.end_ms, 0.0, window.end_ms)
            answers.append(
                Forecast(
                    window.cell,
                    window.kpis,
                    window.end_ms,
                    window.step_ms,
                    tuple(levels),
                    values,
                    self.identity,
                    Rung.FULL,
                    span,
                )
            )
        return answers


@pytest.fixture
def windows(make_window):
    return [make_window(seed, kpis=("RRU.PrbTotDl", "RRU.PrbTotUl")) for seed in range(3)]


def test_whoever_knows_the_future_makes_no_error(windows):
    result = backtest([Clairvoyant(windows)], windows, CONFIG)
    for line in result.overall():
        assert line.accuracy.wql == pytest.approx(0)
        assert line.accuracy.coverage == 1


def test_no_forecaster_sees_past_its_origin(windows):
    clairvoyant = Clairvoyant(windows)
    backtest([clairvoyant], windows, CONFIG)
    origins = {(window.cell, window.steps) for window in clairvoyant.seen}
    expected = {
        (window.cell, origin) for window in windows for origin in origins_of(window, CONFIG)
    }
    assert origins == expected


def test_every_target_is_counted_once_a_kpi(windows):
    result = backtest([Clairvoyant(windows)], windows, CONFIG)
    origins = sum(len(origins_of(window, CONFIG)) for window in windows)
    assert result.origins == origins
    assert result.cells == 3
    for line in result.overall():
        assert line.accuracy.targets == origins * CONFIG.horizon


def test_the_better_forecaster_comes_first(windows, catalogue):
    result = backtest([SeasonalBaseline(catalogue), Clairvoyant(windows)], windows, CONFIG)
    assert [line.model for line in result.overall()][::2] == ["clairvoyant", "clairvoyant"]


def test_the_baseline_covers_about_what_its_levels_say(make_window, catalogue):
    windows = [make_window(seed, steps=24 * 30) for seed in range(4)]
    result = backtest([SeasonalBaseline(catalogue)], windows, CONFIG)
    (line,) = result.overall()
    assert 0.7 < line.accuracy.coverage < 0.9
    assert line.accuracy.mase < 1


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


def test_progress_ends_with_all_origins(windows):
    seen = []
    result = backtest(
        [Clairvoyant(windows)], windows, CONFIG, lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (result.origins, result.origins)


def test_a_few_examples_are_kept(windows):
    result = backtest([Clairvoyant(windows)], windows, CONFIG)
    assert len(result.examples) == 6
    for example in result.examples:
        np.testing.assert_array_equal(example.forecast.values[..., 1], example.actual)


def test_a_history_too_short_is_refused_with_what_is_needed(make_window):
    with pytest.raises(DataError, match="at least 44 samples"):
        backtest([Clairvoyant([])], [make_window(steps=40)], CONFIG)


@pytest.mark.parametrize("ratio", [0.05, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("horizon", [1, 12, 24, 192])
def test_as_many_samples_as_it_asks_for_are_enough(make_window, horizon, ratio):
    config = BacktestConfig(horizon=horizon, test_ratio=ratio)
    assert origins_of(make_window(steps=config.enough_steps), config)


class Nobody(Clairvoyant):
    """Forecasts nothing at all."""

    def predict(self, windows, horizon, levels):
        answers = super().predict(windows, horizon, levels)
        return [replace(a, values=np.full_like(a.values, np.nan)) for a in answers]


def test_a_score_that_is_no_number_comes_last(windows):
    predictors = [Nobody(windows, "nobody"), Clairvoyant(windows)]
    result = backtest(predictors, windows, CONFIG)
    assert [line.model for line in result.overall()] == ["clairvoyant", "nobody"] * 2


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
