"""What a checkpoint is compared with learns from its data, for as long as it did."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from benchmarks.accuracy import exam, rivals
from benchmarks.accuracy.lstm import LstmForecaster, load_lstm
from benchmarks.harness import Unavailable
from kpi.catalogue import load_catalogue
from kpi.history import Selection, load_windows
from model.config import POSITIONS
from training.dataset import windows_digest
from training.fit import Progress
from training.fit_config import FitConfig
from training.source import MixedSource
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


@pytest.fixture
def recording(monkeypatch, tmp_path) -> Path:
    """Ten days of a cell beside the checkout."""
    monkeypatch.setattr(exam, "YARDSTICK", tmp_path / "tools" / "yardstick.py")
    start = datetime(2026, 1, 5, tzinfo=UTC)
    rows = [f"{(start + timedelta(hours=n)).isoformat()},A,{n % 24}" for n in range(240)]
    path: Path = tmp_path / "data" / "cells.csv"
    path.parent.mkdir()
    path.write_text("\n".join(["timestamp,cell,RRU.PrbTotDl", *rows]), encoding="utf-8")
    return path


def test_recordings_of_the_same_name_but_other_values_are_refused(like, recording):
    card = {**like.training, "data": [recording.name], "data_digest": "sha256:other"}
    with pytest.raises(Unavailable, match="not those"):
        rivals.Mixture.of(replace(like, training=card), like.config, load_catalogue())


def test_recordings_make_the_share_of_batches_that_the_card_names(like, recording):
    def refuse(error: Exception) -> None:
        raise error

    digest = windows_digest(load_windows([recording], Selection(), load_catalogue(), refuse))
    shares = {"recorded_ratio": 0.25, "calibration_ratio": 0.2}
    card = {**like.training, "data": [recording.name], "data_digest": digest, **shares}
    mixture = rivals.Mixture.of(replace(like, training=card), like.config, load_catalogue())
    assert mixture.digest == digest
    for source in (mixture.teaching, mixture.calibrating):
        assert isinstance(source, MixedSource)
        assert tuple(source.shares) == (0.75, 0.25)
        assert source.sources[1].batch(np.random.default_rng(0)).windows > 0


def test_the_identity_is_that_of_what_forecasts_not_of_the_card(like):
    assert rivals.identity(like) == rivals.identity(replace(like, evaluation={"x": 1}, version="2"))
    weights = {name: tensor + 1 for name, tensor in like.weights.items()}
    assert rivals.identity(like) != rivals.identity(replace(like, weights=weights))
    longer = replace(like.config, context_patches=7)
    assert rivals.identity(like) != rivals.identity(replace(like, config=longer))
