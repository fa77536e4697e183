"""What a checkpoint is compared with learns from its data, for as long as it did."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from benchmarks.accuracy import exam, rivals
from benchmarks.accuracy.lstm import LstmForecaster, load_lstm
from benchmarks.harness import Unavailable
from kpi.catalogue import load_catalogue
from model.config import POSITIONS
from training.fit import FitConfig, Progress
from training.synthetic import BatchSpec

FIT = FitConfig(steps=2, batches_per_step=1, warmup_steps=1, evaluate_every=2, validation_batches=1)
SPEC = BatchSpec(series=4, max_context_steps=48, max_history_steps=64, max_horizon=16, patch=8)


@pytest.fixture
def like(checkpoint):
    card = {"data": ["synthetic cells"], "fit": asdict(FIT), "synthetic": asdict(SPEC)}
    return replace(checkpoint, training=card)


def test_the_lstm_gets_the_budget_and_the_shape_of_the_checkpoint(like):
    rival = rivals.lstm(like)
    assert rival.config == like.config
    assert rival.fit == replace(FIT, compiled=False)
    assert rival.build is LstmForecaster


def test_a_card_without_settings_gives_no_budget(like):
    with pytest.raises(Unavailable, match="does not say"):
        rivals.budget(replace(like, training={}))
    with pytest.raises(Unavailable, match="does not say"):
        rivals.budget(replace(like, training={"fit": {"unheard_of": 1}}))


def test_the_kinds_of_positions_differ_in_nothing_else(tiny):
    found = rivals.positions()
    assert [rival.config.position for rival in found] == list(POSITIONS)
    assert len({rival.fit for rival in found}) == 1
    assert len({replace(rival.config, position="rope") for rival in found}) == 1
    assert len({rival.name for rival in found}) == 3
    assert tiny.position == "rope"


def test_a_rival_is_trained_calibrated_and_can_be_read(like, monkeypatch, tmp_path):
    monkeypatch.setattr(rivals, "CALIBRATION_BATCHES", 40)
    seen: list[Progress] = []
    path = rivals.train_rival(
        rivals.lstm(like), like, load_catalogue(), tmp_path, on_progress=seen.append
    )
    found = load_lstm(path)
    assert [progress.step for progress in seen] == [1, 2]
    assert found.training["steps"] == 2
    assert found.calibration is not None
    assert found.training["like"]["name"] == like.name
    assert [file.name for file in tmp_path.iterdir()] == ["lstm.safetensors"]


def test_recordings_that_are_not_beside_the_checkout_are_named(like, monkeypatch, tmp_path):
    monkeypatch.setattr(exam, "YARDSTICK", tmp_path / "tools" / "yardstick.py")
    card = {**like.training, "data": ["synthetic cells", "cells.parquet"]}
    with pytest.raises(Unavailable, match=r"cells\.parquet"):
        rivals.Mixture.of(replace(like, training=card), like.config, load_catalogue())


def test_recordings_of_the_same_name_but_other_values_are_refused(like, monkeypatch, tmp_path):
    monkeypatch.setattr(exam, "YARDSTICK", tmp_path / "tools" / "yardstick.py")
    (tmp_path / "data").mkdir()
    rows = [f"2026-01-05T{hour:02}:00:00Z,A,{hour}" for hour in range(24)]
    text = "\n".join(["timestamp,cell,RRU.PrbTotDl", *rows])
    (tmp_path / "data" / "cells.csv").write_text(text, encoding="utf-8")
    card = {**like.training, "data": ["cells.csv"], "data_digest": "sha256:other"}
    with pytest.raises(Unavailable, match="not those"):
        rivals.Mixture.of(replace(like, training=card), like.config, load_catalogue())


def test_the_identity_is_that_of_what_forecasts_not_of_the_card(like):
    assert rivals.identity(like) == rivals.identity(replace(like, evaluation={"x": 1}, version="2"))
    weights = {name: tensor + 1 for name, tensor in like.weights.items()}
    assert rivals.identity(like) != rivals.identity(replace(like, weights=weights))
    longer = replace(like.config, context_patches=7)
    assert rivals.identity(like) != rivals.identity(replace(like, config=longer))
