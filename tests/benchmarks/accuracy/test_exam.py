"""The exams give forecasters what the yardstick asks for, and take its word."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from benchmarks import accuracy
from benchmarks.accuracy import exam
from benchmarks.harness import Unavailable
from kpi.catalogue import load_catalogue
from model.baseline import SeasonalBaseline


def test_contexts_become_windows_that_end_at_their_origin(lte):
    windows = accuracy.to_windows(lte.task, lte.test, "Load")
    assert windows[0].cell == "7"
    assert windows[-1].cell == "8"
    assert windows[0].end_ms == lte.test.start[0].astype("datetime64[ms]").astype(int)
    assert windows[0].step_ms == 3_600_000
    np.testing.assert_allclose(windows[3].values[0], lte.test.context[3], rtol=1e-6)


def test_gaps_of_a_context_stay_gaps(lte):
    context = lte.test.context.copy()
    context[0, 5] = np.nan
    changed = lte.with_contexts(context)
    assert np.isnan(accuracy.to_windows(lte.task, changed.test, "Load")[0].values[0, 5])


def test_forecasts_are_scored_in_the_yardsticks_shape_and_never_negative(yardstick):
    scores = accuracy.evaluate(SeasonalBaseline(load_catalogue()), "lte_hourly")
    (quantiles,) = yardstick.scored
    assert quantiles.shape == (16, 6, 9)
    assert quantiles.min() >= 0
    assert scores["WQL"] < 5


def test_the_training_part_ends_where_the_first_test_target_begins(lte):
    parts = lte.training_part()
    assert [part.cell for part in parts] == ["7", "8"]
    assert parts[0].end_ms == lte.test.start[0].astype("datetime64[ms]").astype(int)
    np.testing.assert_allclose(
        parts[0].values[0, -lte.task.context :], lte.test.context[0], rtol=1e-6
    )


def test_a_series_that_is_all_test_teaches_nothing(lte):
    lte.task.train_end[8] = 0
    assert [part.cell for part in lte.training_part()] == ["7"]


def test_without_the_traces_nothing_is_measured(monkeypatch, tmp_path):
    monkeypatch.setattr(exam, "YARDSTICK", tmp_path / "none.py")
    with pytest.raises(Unavailable, match="beside the checkout"):
        accuracy.load_yardstick()


def test_the_yardstick_is_loaded_from_where_it_lies(monkeypatch, tmp_path):
    path = tmp_path / "yardstick.py"
    path.write_text("LEVELS = [0.5]\n", encoding="utf-8")
    monkeypatch.setattr(exam, "YARDSTICK", path)
    monkeypatch.setitem(sys.modules, "yardstick", None)
    assert accuracy.load_yardstick().LEVELS == [0.5]
