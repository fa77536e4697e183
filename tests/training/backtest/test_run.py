"""Backtests look only back, count every origin once and tell who was better."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from model.baseline import SeasonalBaseline
from model.errors import HorizonError
from model.predictor import ContextSpan, Forecast, ModelIdentity, Rung
from training.backtest import Backtest, BacktestConfig, backtest, origins_of
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


def test_progress_ends_with_all_origins(windows):
    seen = []
    how = Backtest(on_progress=lambda done, total: seen.append((done, total)))
    result = backtest([Clairvoyant(windows)], windows, CONFIG, how)
    assert seen[-1] == (result.origins, result.origins)


def test_a_few_examples_are_kept(windows):
    result = backtest([Clairvoyant(windows)], windows, CONFIG)
    assert len(result.examples) == 6
    for example in result.examples:
        np.testing.assert_array_equal(example.forecast.values[..., 1], example.actual)


def test_a_history_too_short_is_refused_with_what_is_needed(make_window):
    with pytest.raises(DataError, match="at least 44 samples"):
        backtest([Clairvoyant([])], [make_window(steps=40)], CONFIG)


class Nobody(Clairvoyant):
    """Forecasts nothing at all."""

    def predict(self, windows, horizon, levels):
        answers = super().predict(windows, horizon, levels)
        return [replace(a, values=np.full_like(a.values, np.nan)) for a in answers]


def test_a_score_that_is_no_number_comes_last(windows):
    predictors = [Nobody(windows, "nobody"), Clairvoyant(windows)]
    result = backtest(predictors, windows, CONFIG)
    assert [line.model for line in result.overall()] == ["clairvoyant", "nobody"] * 2


class Learner(Clairvoyant):
    """Keeps what it was given to learn from."""

    note = "learns"

    def fit(self, windows, _config, on_progress=None):
        self.lessons = {window.cell: window for window in windows}
        if on_progress:
            on_progress(1, 2)
            on_progress(2, 2)


def test_learners_are_given_what_lies_before_every_first_origin_and_no_more(windows):
    learner = Learner(windows)
    backtest([learner], windows, CONFIG)
    for window in windows:
        first = origins_of(window, CONFIG)[0]
        np.testing.assert_array_equal(learner.lessons[window.cell].values, window.values[:, :first])


def test_learning_is_shown_timed_and_noted(windows):
    seen = []
    how = Backtest(on_fit=lambda *progress: seen.append(progress))
    result = backtest([Learner(windows)], windows, CONFIG, how)
    assert seen == [("clairvoyant", 1, 2), ("clairvoyant", 2, 2)]
    assert result.notes == {"clairvoyant": "learns"}
    assert result.fit_seconds.keys() == {"clairvoyant"}


def test_cells_are_handed_on_one_by_one_and_add_up_to_the_whole(windows):
    cells = []
    how = Backtest(on_cell=lambda scores: cells.append(list(scores)))
    result = backtest([Clairvoyant(windows), Nobody(windows, "nobody")], windows, CONFIG, how)
    assert [scores[0].cell for scores in cells] == ["cell=0", "cell=1", "cell=2"]
    for line in result.scores:
        parts = [
            entry.score.accuracy
            for scores in cells
            for entry in scores
            if (entry.score.model, entry.score.kpi, entry.score.first_lead)
            == (line.model, line.kpi, line.first_lead)
        ]
        assert len(parts) == 3
        assert sum(part.targets for part in parts) == line.accuracy.targets
        assert sum(part.absolute_target for part in parts) == pytest.approx(
            line.accuracy.absolute_target
        )


def test_two_forecasters_of_one_name_are_refused(windows):
    with pytest.raises(DataError, match=r"twice.*clairvoyant"):
        backtest([Clairvoyant(windows), Clairvoyant(windows)], windows, CONFIG)


def test_no_forecaster_at_all_is_refused(windows):
    with pytest.raises(DataError, match="got none"):
        backtest([], windows, CONFIG)


class Shortsighted(Clairvoyant):
    def predict(self, *_):
        raise HorizonError("expected a horizon of 1 to 3 steps")


def test_who_cannot_look_so_far_is_refused_before_anyone_learns(windows):
    learner = Learner(windows)
    with pytest.raises(HorizonError):
        backtest([learner, Shortsighted(windows, "shortsighted")], windows, CONFIG)
    assert not hasattr(learner, "lessons")


def test_cells_that_cannot_be_tested_are_named_with_the_reason(make_window):
    good, short, silent = make_window(0), make_window(1, steps=20), make_window(2)
    silent.values[:, 200:] = np.nan
    windows = [good, short, silent]
    result = backtest([Clairvoyant(windows)], windows, CONFIG)
    reasons = {entry.cell: entry.reason for entry in result.skipped}
    assert reasons.keys() == {"cell=1", "cell=2"}
    assert "20 samples" in reasons["cell=1"]
    assert "no value" in reasons["cell=2"]
    assert result.cells == 2


def test_errors_by_hour_count_every_target_once(windows):
    result = backtest([Nobody(windows, "nobody"), Clairvoyant(windows)], windows, CONFIG)
    found = result.hours["clairvoyant", "RRU.PrbTotDl"]
    (line,) = (x for x in result.overall() if (x.model, x.kpi) == ("clairvoyant", "RRU.PrbTotDl"))
    assert found.targets.sum() == line.accuracy.targets
    assert found.absolute_target.sum() == pytest.approx(line.accuracy.absolute_target)
    assert result.hours["nobody", "RRU.PrbTotDl"].targets.sum() == 0


def test_a_step_of_a_day_has_no_hours(make_window):
    window = replace(make_window(), step_ms=86_400_000)
    assert backtest([Clairvoyant([window])], [window], CONFIG).hours == {}


def test_less_than_one_job_is_refused():
    with pytest.raises(DataError, match="at least one job"):
        Backtest(jobs=0)
