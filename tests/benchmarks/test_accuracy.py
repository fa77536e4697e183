"""The accuracy benchmark gives the yardstick what it asks for and takes its word."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import accuracy
from benchmarks.harness import Unavailable
from kpi.catalogue import load_catalogue
from model.baseline import SeasonalBaseline
from model.checkpoint import load_checkpoint
from model.pretrained import default_checkpoint_path

HORIZON = 6
START = np.datetime64("2026-01-05T00:00")


class Yardstick:
    """A task of two hourly series; scores are the mean error of the median."""

    LEVELS = np.array([0.1, 0.5, 0.9])

    def __init__(self, week: int = 168) -> None:
        self.week = week
        self.scored: list[np.ndarray] = []

    def load(self, name: str) -> Any:
        assert name in accuracy.TASKS
        return SimpleNamespace(step_seconds=3600, horizon=HORIZON, season=24, week=self.week)

    def windows(self, task: Any, part: str) -> Any:
        hours = np.arange(96 + task.horizon)
        day = np.stack([50 + 30 * np.sin(2 * np.pi * hours / 24), 10.0 + 0 * hours])
        day[1, 5] = np.nan
        return SimpleNamespace(
            part=part,
            series=np.array([7, 8]),
            start=np.array([START, START]),
            context=day[:, :96],
            target=day[:, 96:],
        )

    def seasonal_naive(self, task: Any, season: int) -> Any:
        def forecast(windows: Any) -> np.ndarray:
            index = 96 - season % 96 + np.arange(task.horizon) % season
            return np.asarray(windows.context[:, np.minimum(index, 95)])

        return forecast

    def with_residual_quantiles(self, _task: Any, train: Any, test: Any, point: Any) -> np.ndarray:
        assert (train.part, test.part) == ("train", "test")
        return np.repeat(point(test)[..., None], 3, axis=-1)

    def score(self, _task: Any, test: Any, quantiles: np.ndarray) -> dict[str, float]:
        self.scored.append(quantiles)
        return {"WQL": float(np.abs(quantiles[..., 1] - test.target).mean())}


@pytest.fixture
def yardstick(monkeypatch) -> Yardstick:
    fake = Yardstick()
    monkeypatch.setattr(accuracy, "load_yardstick", lambda: fake)
    return fake


def test_contexts_become_windows_that_end_at_their_origin(yardstick):
    task = yardstick.load("lte_hourly")
    windows = accuracy.to_windows(task, yardstick.windows(task, "test"), "Load")
    assert [window.cell for window in windows] == ["7", "8"]
    assert windows[0].end_ms == START.astype("datetime64[ms]").astype(int)
    assert windows[0].step_ms == 3_600_000
    assert np.isnan(windows[1].values[0, 5])


def test_forecasts_are_scored_in_the_yardsticks_shape_and_never_negative(yardstick):
    scores = accuracy.evaluate(SeasonalBaseline(load_catalogue()), "lte_hourly")
    (quantiles,) = yardstick.scored
    assert quantiles.shape == (2, HORIZON, 3)
    assert quantiles.min() >= 0
    assert scores["WQL"] < 1


@pytest.mark.parametrize(
    ("week", "names"),
    [
        (168, {"seasonal naive", "last value", "weekly naive"}),
        (0, {"seasonal naive", "last value"}),
    ],
)
def test_a_week_counts_as_an_opponent_where_there_is_one(yardstick, week, names):
    yardstick.week = week
    assert set(accuracy.naive_scores("lte_hourly")) == names


def test_every_task_is_measured_against_its_best_naive_forecast(yardstick, monkeypatch):
    monkeypatch.setattr(accuracy, "load_checkpoint", lambda _: None)
    monkeypatch.setattr(
        accuracy, "TransformerPredictor", lambda _, catalogue: SeasonalBaseline(catalogue)
    )
    naive = {"good": {"WQL": 0.5}, "bad": {"WQL": 2.0}}
    monkeypatch.setattr(accuracy, "naive_scores", lambda _: naive)
    results = list(accuracy.measure(True))
    assert [result.id for result in results] == [f"accuracy.{task}.wql" for task in accuracy.TASKS]
    for result in results:
        assert result.opponent == "good"
        assert result.value == pytest.approx(result.detail["rancast"]["WQL"] / 0.5)
        assert result.met == (result.value < 1)
    assert len(yardstick.scored) == len(accuracy.TASKS)


def test_without_the_traces_nothing_is_measured(monkeypatch, tmp_path):
    monkeypatch.setattr(accuracy, "YARDSTICK", tmp_path / "none.py")
    with pytest.raises(Unavailable, match="beside the checkout"):
        accuracy.load_yardstick()


def test_the_yardstick_is_loaded_from_where_it_lies(monkeypatch, tmp_path):
    path = tmp_path / "yardstick.py"
    path.write_text("LEVELS = [0.5]\n", encoding="utf-8")
    monkeypatch.setattr(accuracy, "YARDSTICK", path)
    monkeypatch.setitem(sys.modules, "yardstick", None)
    assert accuracy.load_yardstick().LEVELS == [0.5]


@pytest.mark.usefixtures("yardstick")
def test_scores_are_recorded_in_the_card_of_a_checkpoint(tmp_path, capsys):
    shipped = default_checkpoint_path()
    path = tmp_path / "copy.safetensors"
    path.write_bytes(shipped.read_bytes())
    accuracy.run(["--record", str(path)])
    recorded = load_checkpoint(path)
    assert set(recorded.evaluation) == set(accuracy.TASKS)
    assert all("rancast" in scores for scores in recorded.evaluation.values())
    assert recorded.digest in capsys.readouterr().out
    assert recorded.training == load_checkpoint(shipped).training
