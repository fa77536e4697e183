"""AutoTheta and MSTL: intervals of their own, seasons that fit, and no window too odd."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from model.errors import HorizonError, LevelError
from training.opponents import make_opponents
from training.opponents.auto_theta import AutoThetaOpponent
from training.opponents.mstl import MstlOpponent
from training.opponents.statistical import seasons

LEVELS = (0.1, 0.5, 0.9)
OPPONENTS = (AutoThetaOpponent, MstlOpponent)


def with_values(window, values):
    return replace(window, values=np.asarray(values, dtype=np.float32)[None])


@pytest.mark.parametrize("opponent", OPPONENTS)
def test_a_daily_season_is_found_and_enclosed(catalogue, make_window, opponent):
    whole = make_window(steps=24 * 15)
    past = replace(whole, values=whole.values[:, : 24 * 14])
    forecaster = opponent(catalogue)
    (forecast,) = forecaster.predict([past], 24, LEVELS)
    actual = whole.values[0, 24 * 14 :]
    error = np.abs(forecast.values[0, :, 1] - actual).mean()
    assert error < 10 < np.abs(actual - past.values[0, -1]).mean()
    inside = (forecast.values[0, :, 0] <= actual) & (actual <= forecast.values[0, :, 2])
    assert inside.mean() > 0.3
    assert forecaster.fallbacks == 0


@pytest.mark.parametrize("opponent", OPPONENTS)
def test_the_same_window_gets_the_same_forecast(catalogue, make_window, opponent):
    window = make_window(steps=100)
    first, second = (opponent(catalogue).predict([window], 6, LEVELS)[0] for _ in range(2))
    np.testing.assert_array_equal(first.values, second.values)


@pytest.mark.parametrize("opponent", OPPONENTS)
def test_odd_windows_are_answered(catalogue, make_window, opponent):
    rng = np.random.default_rng(0)
    gaps = make_window(steps=200).values[0].copy()
    gaps[rng.random(200) < 0.9] = np.nan
    window = make_window(steps=200)
    windows = [
        with_values(window, gaps),
        with_values(window, np.full(200, 7.0)),
        with_values(window, [3.0, 4.0]),
        with_values(window, np.full(200, np.nan)),
        with_values(window, np.append(np.full(150, np.nan), gaps[150:])),
        with_values(window, 3e38 * rng.random(100)),
    ]
    forecaster = opponent(catalogue)
    forecasts = forecaster.predict(windows, 6, LEVELS)
    for forecast in forecasts:
        assert np.isfinite(forecast.values).all()
        assert (np.diff(forecast.values, axis=-1) >= 0).all()
        assert (forecast.values >= 0).all()
        assert (forecast.values <= 100).all()
    np.testing.assert_array_equal(forecasts[1].values, np.full((1, 6, 3), 7, dtype=np.float32))
    assert forecaster.fallbacks >= 2


def test_a_method_that_raises_is_replaced_by_the_last_value_and_counted(catalogue, make_window):
    class Broken(AutoThetaOpponent):
        def _method(self, _periods):
            raise ZeroDivisionError

    windows = [make_window(0, kpis=("RRU.PrbTotDl", "RRU.PrbTotUl")), make_window(1)]
    broken = Broken(catalogue)
    (instead,) = make_opponents(["last-value"], catalogue)
    for found, expected in zip(
        broken.predict(windows, 6, LEVELS), instead.predict(windows, 6, LEVELS), strict=True
    ):
        np.testing.assert_array_equal(found.values, expected.values)
        assert found.model.name == "AutoTheta"
    assert broken.fallbacks == 3


def test_levels_need_not_be_symmetric(catalogue, make_window):
    window = make_window(steps=100)
    (forecast,) = AutoThetaOpponent(catalogue).predict([window], 6, (0.05, 0.3, 0.5, 0.8))
    assert (np.diff(forecast.values[0], axis=-1) > 0).all()


def test_what_cannot_be_asked_is_refused(catalogue, make_window):
    with pytest.raises(HorizonError, match="got 0"):
        AutoThetaOpponent(catalogue).predict([make_window()], 0, LEVELS)
    with pytest.raises(LevelError):
        AutoThetaOpponent(catalogue).predict([make_window()], 1, (0.001,))


@pytest.mark.parametrize(
    ("step_ms", "steps", "expected"),
    [
        (3_600_000, 47, []),
        (3_600_000, 48, [24]),
        (3_600_000, 336, [24, 168]),
        (86_400_000, 14, [7]),
        (604_800_000, 100, []),
        (1000, 1500, []),
    ],
)
def test_seasons_are_those_that_the_window_holds_twice(step_ms, steps, expected):
    assert seasons(step_ms, steps) == expected
