"""The checkpoints that ship: small, documented, unchanged, and better than naive forecasts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.accuracy import TASKS, evaluate, naive_scores
from kpi.catalogue import load_catalogue
from kpi.window import KpiWindow
from model.accuracy import measure
from model.baseline import SeasonalBaseline
from model.checkpoint import Checkpoint, load_checkpoint
from model.pretrained import default_checkpoint_path, find_checkpoint, shipped_names
from model.transformer import TransformerPredictor

GOLDEN = Path(__file__).parent / "fixtures" / "golden_forecast.json"
LEVELS = (0.1, 0.5, 0.9)
HOUR_MS = 3_600_000
MONDAY_MS = 1_767_571_200_000  # 2026-01-05T00:00Z


@pytest.fixture(scope="module", params=["rancast-small", "rancast-base"])
def path(request) -> Path:
    return find_checkpoint(Path(request.param))


@pytest.fixture(scope="module")
def checkpoint(path) -> Checkpoint:
    return load_checkpoint(path)


@pytest.fixture(scope="module")
def shipped(checkpoint) -> TransformerPredictor:
    return TransformerPredictor(checkpoint, load_catalogue())


def golden_window() -> KpiWindow:
    """Three weeks of an hourly cell that any machine computes alike."""
    hour = np.arange(24 * 21)
    day = 40 + 30 * np.sin(2 * np.pi * (hour - 9) / 24) + 5 * ((hour * 37) % 11 - 5) / 5
    weekend = np.where(hour // 24 % 7 >= 5, 0.6, 1.0)
    users = 80 + 50 * np.sin(2 * np.pi * (hour - 8) / 24) * weekend
    return KpiWindow(
        "Site=1,NRCellDU=1",
        ("RRU.PrbTotDl", "DRB.MeanActiveUeDl"),
        MONDAY_MS,
        HOUR_MS,
        np.stack([day * weekend, users]).astype(np.float32),
    )


def test_these_and_no_others_ship():
    assert shipped_names() == ("rancast-base", "rancast-small")
    assert default_checkpoint_path().stem == "rancast-small"


def test_it_is_small(path, checkpoint):
    assert path.stat().st_size < 16_000_000
    assert checkpoint.name == path.stem


def test_its_card_says_what_it_was_made_of(checkpoint):
    recordings = ["tractor_kpm_1s.parquet", "kirlf_lte_failure_hourly.parquet"]
    assert checkpoint.training["data"] == ["synthetic cells", *recordings]
    assert checkpoint.training["excluded_cells"] == ["*Trial2*"]
    assert checkpoint.training["limits"]
    assert checkpoint.training["fit"]["seed"] == 0
    assert checkpoint.training["steps"] == checkpoint.training["fit"]["steps"]
    assert set(checkpoint.evaluation) == set(TASKS)


def test_its_card_claims_to_beat_naive_forecasts_on_every_task(checkpoint):
    for scores in checkpoint.evaluation.values():
        ours = scores["rancast"]["WQL"]
        assert all(ours < other["WQL"] for name, other in scores.items() if name != "rancast")


@pytest.mark.slow
@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("task", TASKS)
def test_it_beats_the_naive_forecasts_of_real_cells(shipped, checkpoint, task):
    ours = evaluate(shipped, task)
    assert ours["WQL"] == pytest.approx(checkpoint.evaluation[task]["rancast"]["WQL"], rel=1e-3)
    assert all(ours["WQL"] < scores["WQL"] for scores in naive_scores(task).values())


def test_its_forecast_is_the_one_on_record(shipped):
    (forecast,) = shipped.predict([golden_window()], 24, LEVELS)
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))[forecast.model.name]
    assert forecast.model.digest == golden["digest"]
    np.testing.assert_allclose(forecast.values, np.array(golden["values"]), rtol=1e-3, atol=1e-2)


def test_a_rhythm_is_followed(shipped):
    window = golden_window()
    past = replace(window, values=window.values[:, :-24])
    (forecast,) = shipped.predict([past], 24, LEVELS)
    error = np.abs(forecast.values[..., 1] - window.values[:, -24:]).mean(axis=1)
    assert (error < 0.15 * window.values.std(axis=1) + 4).all()


@pytest.mark.parametrize("level", [0.0, 3.0, 99.5])
def test_a_constant_goes_on(shipped, level):
    window = replace(golden_window(), values=np.full((2, 504), level, np.float32))
    (forecast,) = shipped.predict([window], 48, LEVELS)
    assert np.abs(forecast.values - level).max() <= 0.05 * level + 1e-3


def test_it_knows_more_than_the_seasonal_baseline_on_a_noisy_rhythm(shipped):
    rng = np.random.default_rng(1)
    base = golden_window().values[:1]
    noisy = base * rng.lognormal(0, 0.25, size=(20, 504)).astype(np.float32)
    windows = [
        replace(golden_window(), kpis=("DRB.MeanActiveUeDl",), values=row[None, :480])
        for row in noisy
    ]
    target = noisy[:, 480:]
    scores = [
        measure(
            np.stack([f.values[0] for f in predictor.predict(windows, 24, LEVELS)]), target, LEVELS
        )
        for predictor in (shipped, SeasonalBaseline(load_catalogue()))
    ]
    assert scores[0].wql < scores[1].wql
    assert 0.7 < scores[0].coverage < 0.95


def test_a_missing_day_is_bridged(shipped):
    window = golden_window()
    values = window.values.copy()
    values[:, -24:] = np.nan
    (forecast,) = shipped.predict([replace(window, values=values)], 24, LEVELS)
    assert forecast.context.missing_ratio == pytest.approx(24 / 504)
    expected = window.values[:, -168:-144]
    assert np.abs(forecast.values[..., 1] - expected).mean() < 15
