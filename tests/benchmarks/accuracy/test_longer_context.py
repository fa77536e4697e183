"""More context than in training: the same origins, targets and weights."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.accuracy import longer_context
from benchmarks.harness import Unavailable
from kpi.catalogue import load_catalogue


@pytest.fixture
def short(monkeypatch) -> None:
    monkeypatch.setattr(longer_context, "WEEK_STEPS", 6)
    monkeypatch.setattr(longer_context, "ORIGINS_A_CELL", 3)


def test_only_the_context_grows(checkpoint):
    found = longer_context.longer(checkpoint, 4)
    assert found.config.context_steps == 4 * checkpoint.config.context_steps
    assert found.weights is checkpoint.weights


def test_origins_are_a_day_apart_and_end_with_the_training_part(lte, monkeypatch):
    monkeypatch.setattr(longer_context, "ORIGINS_A_CELL", 3)
    windows, targets = longer_context.daily_origins(lte, 200)
    first_test_ms = lte.test.start[0].astype("datetime64[ms]").astype(int)
    ends = [(first_test_ms - window.end_ms) // 3_600_000 for window in windows]
    assert ends == [6, 30, 54] * 2
    assert {window.steps for window in windows} == {200}
    np.testing.assert_allclose(targets[0], lte.task.series[7][0][378:384], rtol=1e-6)


def test_training_parts_too_short_for_the_history_are_refused(lte):
    with pytest.raises(Unavailable, match="too short"):
        longer_context.daily_origins(lte, 10_000)


@pytest.mark.usefixtures("short")
def test_recorded_cells_are_scored_at_each_length(checkpoint, lte):
    found = longer_context.on_recorded(checkpoint, lte, load_catalogue())
    assert list(found) == [1, 2, 4]
    assert all(np.isfinite(loss) for loss in found.values())
    assert len(set(found.values())) == 3


def test_synthetic_cells_are_scored_at_each_length_and_always_the_same(checkpoint):
    found = longer_context.on_synthetic(checkpoint, batches=2)
    assert list(found) == [1, 2, 4]
    assert all(0 < loss < 10 for loss in found.values())
    assert found == longer_context.on_synthetic(checkpoint, batches=2)
