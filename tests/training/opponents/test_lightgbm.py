"""Both LightGBM opponents learn from the training part only, the same way every time."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from training.backtest import BacktestConfig, backtest
from training.opponents import lightgbm_tuned, lightgbm_untuned, make_opponents
from training.opponents.lightgbm_tuned import TunedLightGbmOpponent
from training.opponents.lightgbm_untuned import LightGbmOpponent

LEVELS = (0.1, 0.5, 0.9)
CONFIG = BacktestConfig(horizon=6, levels=LEVELS, max_origins=10)


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    monkeypatch.setattr(lightgbm_untuned, "TREES", 20)
    monkeypatch.setattr(lightgbm_tuned, "MAX_TREES", 25)
    monkeypatch.setattr(lightgbm_tuned, "LEAVES", (7, 15))
    monkeypatch.setattr(lightgbm_tuned, "LEARNING_RATES", (0.1,))


@pytest.fixture
def windows(make_window):
    return [make_window(seed, steps=24 * 21) for seed in range(3)]


@pytest.mark.parametrize("kind", [LightGbmOpponent, TunedLightGbmOpponent])
def test_it_learns_the_day(catalogue, windows, kind):
    opponent = kind(catalogue)
    (naive,) = make_opponents(["last-value"], catalogue)
    result = backtest([opponent, naive], windows, CONFIG)
    wql = {line.model: line.accuracy.wql for line in result.overall()}
    assert wql[opponent.identity.name] < 0.6 * wql["last value"]
    assert result.fallbacks == {opponent.identity.name: 0}


@pytest.mark.parametrize("kind", [LightGbmOpponent, TunedLightGbmOpponent])
def test_what_comes_after_the_first_origin_teaches_nothing(catalogue, windows, kind):
    changed = [replace(window, values=window.values.copy()) for window in windows]
    for window in changed:
        window.values[:, round(window.steps * 0.7) :] = 0
    first, second = kind(catalogue), kind(catalogue)
    (small,) = (replace(CONFIG, max_origins=1),)
    backtest([first], windows, small)
    backtest([second], changed, small)
    probe = [windows[0]]
    np.testing.assert_array_equal(
        first.predict(probe, 6, LEVELS)[0].values, second.predict(probe, 6, LEVELS)[0].values
    )


@pytest.mark.parametrize("kind", [LightGbmOpponent, TunedLightGbmOpponent])
def test_progress_ends_complete_and_a_copy_forecasts_the_same(catalogue, windows, kind):
    seen = []
    opponent = kind(catalogue)
    opponent.fit(windows, CONFIG, lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1]
    assert seen == sorted(seen)
    copy = pickle.loads(pickle.dumps(opponent))
    np.testing.assert_array_equal(
        opponent.predict(windows, 6, LEVELS)[1].values,
        copy.predict(windows[1:2], 6, LEVELS)[0].values,
    )


def test_levels_between_those_learnt_and_shorter_horizons_are_answered(catalogue, windows):
    opponent = LightGbmOpponent(catalogue)
    opponent.fit(windows, CONFIG)
    (whole,) = opponent.predict(windows[:1], 6, LEVELS)
    (part,) = opponent.predict(windows[:1], 2, (0.3, 0.5))
    np.testing.assert_allclose(
        part.values[0, :, 0], whole.values[0, :2, :2].mean(axis=-1), rtol=1e-5
    )
    assert opponent.max_horizon == 6
    assert opponent.level_range == (0.1, 0.9)


def test_nothing_to_learn_from_falls_back_and_is_counted(catalogue, make_window):
    window = make_window(steps=30)
    opponent = LightGbmOpponent(catalogue)
    opponent.fit([window], CONFIG)
    (forecast,) = opponent.predict([window], 6, LEVELS)
    assert np.isfinite(forecast.values).all()
    assert opponent.fallbacks == 1


def test_odd_windows_are_answered(catalogue, windows, make_window):
    windows[1].values[:, ::2] = np.nan
    windows[2].values[:] = 0
    opponent = LightGbmOpponent(catalogue)
    opponent.fit(windows, CONFIG)
    silent = make_window(9)
    silent.values[:] = np.nan
    short = make_window(8, steps=3)
    forecasts = opponent.predict([*windows, silent, short], 6, LEVELS)
    for forecast in forecasts:
        assert np.isfinite(forecast.values).all()
        assert (forecast.values >= 0).all()
    assert opponent.fallbacks == 1
    assert forecasts[2].values.max() < forecasts[0].values.max() / 2


def test_few_rows_are_learnt_untried(catalogue, make_window):
    windows = [make_window(steps=60)]
    opponent = TunedLightGbmOpponent(catalogue)
    opponent.fit(windows, replace(CONFIG, horizon=2))
    opponent.predict(windows, 2, LEVELS)
    assert opponent.fallbacks == 0


def test_all_steps_and_kpis_have_models_of_their_own(catalogue, windows, make_window):
    coarse = replace(make_window(5, kpis=("RRU.PrbTotDl", "RRU.PrbTotUl")), step_ms=900_000)
    opponent = LightGbmOpponent(catalogue)
    opponent.fit([*windows, coarse], CONFIG)
    opponent.predict([*windows, coarse], 6, LEVELS)
    assert opponent.fallbacks == 0


def test_trees_are_interpolated_between_the_levels_tried():
    tuned = lightgbm_tuned.Tuned({}, (0.1, 0.5, 0.9), (10, 30, 20), 0.0)
    assert [tuned.trees_at(level) for level in (0.1, 0.3, 0.5, 0.7, 0.9)] == [10, 20, 30, 25, 20]
