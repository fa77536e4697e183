"""Opponents learn from the training part only, and see what the forecaster sees."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.accuracy import opponents
from benchmarks.accuracy.exam import Exam
from kpi.catalogue import load_catalogue


@pytest.mark.parametrize(
    ("week", "names"),
    [
        (168, {"seasonal naive", "last value", "weekly naive"}),
        (None, {"seasonal naive", "last value"}),
    ],
)
def test_a_week_counts_as_an_opponent_where_there_is_one(yardstick, monkeypatch, week, names):
    yardstick.week = week
    season = Exam.load("lte_hourly", yardstick).task.season
    monkeypatch.setattr(yardstick, "seasonal_naive", lambda *_: lambda x: x[:, -season:][:, :6])
    assert set(opponents.naive_scores("lte_hourly")) == names


def test_where_little_is_known_the_naive_forecast_learns_its_errors_from_as_little(yardstick, lte):
    opponents.cold_naive(lte, 72)
    (train,) = yardstick.fitted
    np.testing.assert_array_equal(train.context, lte.train.context[:, -72:])
    assert lte.test.context.shape[1] == 96


def test_rows_of_the_tuned_lightgbm_reach_no_further_than_the_contexts_of_the_task():
    tuned = opponents.TaskLightGbm(load_catalogue(), 96)
    assert tuned.context_steps == 96
    assert tuned._plan(3_600_000, 6).context_steps == 96
    assert tuned._plan(3_600_000, 6).features > 10


def test_lightgbm_is_left_out_where_it_is_not_installed(lte, monkeypatch):
    monkeypatch.setattr(opponents, "find_spec", lambda _: None)
    names = [name for name, _ in opponents.all_scores(lte, load_catalogue())]
    assert names == ["seasonal naive", "last value"]


def test_both_kinds_of_lightgbm_are_scored(lte, monkeypatch):
    learnt = []

    class Quick(opponents.TaskLightGbm):
        def fit(self, windows, config, on_progress=None):
            learnt.append((windows, config, on_progress))

    monkeypatch.setattr(opponents, "TaskLightGbm", Quick)
    scores = dict(opponents.all_scores(lte, load_catalogue()))
    assert scores[opponents.LIGHTGBM]["WQL"] == pytest.approx(0, abs=1e-9)
    assert opponents.LIGHTGBM_TUNED in scores
    ((windows, config, _),) = learnt
    assert [window.steps for window in windows] == [384, 384]
    assert (config.horizon, config.levels) == (6, lte.levels)
