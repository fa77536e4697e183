"""Each part of a sheet changes one thing, and what is learnt comes from the training part."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from benchmarks.accuracy import exam, longer_context, parts
from kpi.catalogue import load_catalogue
from training.tuning import TuneConfig

TASK = "lte_hourly"


@pytest.fixture
def bench(yardstick, monkeypatch) -> parts.Bench:
    monkeypatch.setattr(parts, "TASKS", {TASK: "traffic_volume_mb"})
    bench = parts.Bench(load_catalogue())
    assert bench.exam(TASK).yardstick is yardstick
    return bench


def seen(monkeypatch) -> list[np.ndarray]:
    """Contexts that are forecast from."""
    contexts: list[np.ndarray] = []
    score = exam.Exam.score

    def spy(self, predictor):
        contexts.append(self.test.context)
        return score(self, predictor)

    monkeypatch.setattr(exam.Exam, "score", spy)
    return contexts


def test_a_task_is_loaded_once(bench):
    assert bench.seeded(1).exam(TASK) is bench.exam(TASK)


def test_zero_shot_sees_the_contexts_as_they_are(bench, checkpoint, monkeypatch):
    contexts = seen(monkeypatch)
    assert parts.zero_shot(checkpoint, bench)[TASK]["WQL"] > 0
    assert contexts[0] is bench.exam(TASK).test.context


@pytest.mark.parametrize(("part", "missing"), [(parts.gaps, 0.2), (parts.late_end, 9 / 96)])
def test_damaged_contexts_lack_what_they_should(bench, checkpoint, monkeypatch, part, missing):
    contexts = seen(monkeypatch)
    part(checkpoint, bench)
    assert np.isnan(contexts[0]).mean() == pytest.approx(missing, abs=0.1)


def test_a_cold_start_knows_three_days(bench, checkpoint, monkeypatch):
    contexts = seen(monkeypatch)
    found = parts.cold_start(checkpoint, bench)
    assert contexts[0].shape[1] == 72
    assert set(found) == {"rancast", "seasonal naive"}


def test_calibrating_and_tuning_see_the_training_part_only(bench, checkpoint, monkeypatch):
    learnt = []

    def spy_on(name):
        real = getattr(parts, name)

        def spy(base, windows, *others):
            learnt.append(windows)
            return real(base, windows, *others)

        monkeypatch.setattr(parts, name, spy)

    spy_on("fit_calibration")
    spy_on("tune")
    monkeypatch.setattr(parts, "TuneConfig", partial(TuneConfig, steps=2, series=4))
    assert parts.recalibrated(checkpoint, bench)[TASK]["WQL"] > 0
    assert 0 <= parts.tuned(checkpoint, bench)[TASK]["tuned_share"] <= 1
    assert [[window.steps for window in windows] for windows in learnt] == [[384, 384]] * 2


def test_every_factor_of_a_longer_context_is_a_case(bench, checkpoint, monkeypatch):
    losses = {1: 0.4, 2: 0.5, 4: 0.6}
    monkeypatch.setattr(longer_context, "on_recorded", lambda *_: losses)
    monkeypatch.setattr(longer_context, "on_synthetic", lambda *_: losses)
    found = parts.longer(checkpoint, bench)
    assert found["lte_hourly.x4"] == {"WQL": 0.6}
    assert len(found) == 6


def test_opponents_are_a_part_each(bench, monkeypatch):
    monkeypatch.setattr(parts, "all_scores", lambda *_: [("A", {"WQL": 1.0}), ("B", {"WQL": 2.0})])
    assert parts.opponents(bench) == {"A": {TASK: {"WQL": 1.0}}, "B": {TASK: {"WQL": 2.0}}}
