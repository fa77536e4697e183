from dataclasses import replace

import numpy as np
import pytest

from model.compiled.trial import Movement, movement, trial_windows

LEVELS = (0.1, 0.5, 0.9)


class Shifted:
    """Another predictor whose quantiles are moved by a share of their 80 % interval."""

    def __init__(self, inner, ratio, at=None):
        self.inner, self.ratio, self.at = inner, ratio, at
        self.identity, self.level_range = inner.identity, inner.level_range
        self.max_horizon = inner.max_horizon

    def predict(self, windows, horizon, levels):
        return [self.moved(f) for f in self.inner.predict(windows, horizon, levels)]

    def moved(self, forecast):
        values = forecast.values.copy()
        width = values[..., -1:] - values[..., :1]
        if self.at is None:
            values += self.ratio * width
        else:
            values[self.at] += self.ratio * width[self.at[0], self.at[1], 0]
        return replace(forecast, values=values)


@pytest.fixture
def windows(make_window):
    return [make_window(0), make_window(1, kpis=("Free", "Free"))]


def test_a_predictor_does_not_move_from_itself(predictor, windows):
    assert movement(predictor, predictor, windows, LEVELS) == Movement(0, 0)


def test_a_shift_is_measured_by_the_width_of_the_interval(predictor, windows):
    moved = movement(predictor, Shifted(predictor, 0.25), windows, LEVELS)
    assert moved.usual_ratio == pytest.approx(0.25, 1e-3)
    assert moved.most_ratio == pytest.approx(0.25, 1e-3)


def test_the_outermost_levels_have_no_say_in_the_width(predictor, windows):
    wide = (0.05, *LEVELS, 0.95)

    class Moved(Shifted):
        def moved(self, forecast):
            width = forecast.values[..., -2:-1] - forecast.values[..., 1:2]
            return replace(forecast, values=forecast.values + self.ratio * width)

    moved = movement(predictor, Moved(predictor, 0.25), windows, wide)
    assert moved.most_ratio == pytest.approx(0.25, 1e-3)


def test_one_quantile_of_one_step_counts_among_all(predictor, windows):
    moved = movement(predictor, Shifted(predictor, 0.5, at=(0, 0, 1)), windows, LEVELS)
    assert moved.usual_ratio < 0.01
    assert moved.most_ratio == pytest.approx(0.5, rel=1e-3)


def test_an_answer_that_is_no_number_is_infinitely_far(predictor, windows):
    assert movement(predictor, Shifted(predictor, np.nan), windows, LEVELS).most_ratio == np.inf


def test_an_interval_of_no_width_counts_as_wide_as_a_thousandth_of_the_spread(
    predictor, make_window
):
    class Pinned(Shifted):
        def moved(self, forecast):
            return replace(forecast, values=np.full_like(forecast.values, self.ratio))

    window = make_window(0)
    step = 1e-3 * float(np.std(window.values))
    moved = movement(Pinned(predictor, 0.0), Pinned(predictor, step), [window], LEVELS)
    assert moved.most_ratio == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize(
    ("moved", "expected"),
    [
        (Movement(0.03, 0.2), True),
        (Movement(0.031, 0.1), False),
        (Movement(0.01, 0.21), False),
        (Movement(np.inf, np.inf), False),
    ],
)
def test_both_limits_hold(moved, expected):
    assert moved.within(Movement(0.03, 0.2)) is expected


def test_trial_windows_are_the_same_every_time_and_of_many_kinds(tiny_config):
    first, second = trial_windows(tiny_config), trial_windows(tiny_config)
    assert len(first) > 50
    for one, another in zip(first, second, strict=True):
        assert np.array_equal(one.values, another.values, equal_nan=True)
    assert {window.step_ms for window in first} == {1_000, 60_000, 900_000, 3_600_000}
    assert {len(window.kpis) for window in first} == {1, 2, 4}
    assert any(np.isnan(window.values).any() for window in first)
    assert any((window.values == 0).all(axis=1).any() for window in first)
