"""The shipped checkpoints' recipes, run short."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from kpi.history import load_windows
from model.checkpoint import load_checkpoint
from model.config import PRESETS
from model.errors import ModelError
from training.errors import DataError
from training.fit import Progress
from training.pretrain import RECIPES, PretrainOptions, pretrain


@pytest.fixture
def options(tmp_path) -> PretrainOptions:
    return PretrainOptions(
        preset="nano", out=tmp_path / "made.safetensors", steps=2, compiled=False
    )


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr("training.pretrain.CALIBRATION_BATCHES", 40)
    monkeypatch.setattr("training.pretrain.SERIES", 8)


def _refuse(error):
    raise error


@pytest.mark.usefixtures("quick")
def test_a_checkpoint_is_calibrated_and_says_how_it_was_made(options, catalogue):
    seen: list[Progress] = []
    checkpoint = pretrain(options, catalogue, _refuse, seen.append)
    loaded = load_checkpoint(options.out)
    assert [progress.step for progress in seen] == [1, 2]
    assert loaded.name == checkpoint.name == "rancast-nano"
    assert loaded.config == PRESETS["nano"]
    assert loaded.calibration is not None
    card = loaded.training
    assert card["data"] == ["synthetic cells"]
    assert card["recorded_ratio"] == 0
    assert card["fit"]["seed"] == 0
    assert card["parameters"] == loaded.build().parameter_count()
    assert not options.state_path.exists()


@pytest.mark.usefixtures("quick")
def test_the_same_command_makes_the_same_weights(options, catalogue, tmp_path):
    first = pretrain(options, catalogue, _refuse, lambda _: None)
    again = replace(options, out=tmp_path / "again.safetensors")
    second = pretrain(again, catalogue, _refuse, lambda _: None)
    other = pretrain(
        replace(again, seed=1, out=tmp_path / "other.safetensors"),
        catalogue,
        _refuse,
        lambda _: None,
    )
    for name, tensor in first.weights.items():
        assert torch.equal(tensor, second.weights[name])
    assert any(not torch.equal(t, other.weights[n]) for n, t in first.weights.items())


@pytest.mark.usefixtures("quick")
def test_recordings_are_named_and_their_end_does_not_teach(
    options, catalogue, tmp_path, monkeypatch
):
    table = tmp_path / "cells.csv"
    lines = ["timestamp,cell,DRB.UEThpDl"]
    start = np.datetime64("2026-01-01T00:00")
    lines += [f"{start + np.timedelta64(h, 'h')}Z,a,{h % 24}" for h in range(400)]
    table.write_text("\n".join(lines), encoding="utf-8")
    taught = []

    def record(windows, ratio):
        parts = [replace(w, values=w.values[:, : round(w.steps * (1 - ratio))]) for w in windows]
        taught.extend(parts)
        return parts

    monkeypatch.setattr("training.pretrain.earlier_parts", record)
    checkpoint = pretrain(replace(options, data=(table,)), catalogue, _refuse, lambda _: None)
    (window,) = load_windows([table], options.selection, catalogue, _refuse)
    assert checkpoint.training["data"] == ["synthetic cells", "cells.csv"]
    assert checkpoint.training["kpis"] == ["DRB.UEThpDl"]
    assert checkpoint.training["time_zone"] == "UTC"
    assert checkpoint.training["country"] is None
    assert checkpoint.training["data_digest"].startswith("sha256:")
    assert [part.steps for part in taught] == [round(window.steps * 0.9)]


def test_an_unknown_country_is_refused_before_the_first_step(options, catalogue):
    lost = replace(options, selection=replace(options.selection, country="XX"))
    with pytest.raises(ModelError, match="'XX'"):
        pretrain(lost, catalogue, _refuse, lambda _: pytest.fail("a step was made"))


def test_every_recipe_has_a_preset_and_every_preset_a_recipe():
    assert set(RECIPES) == set(PRESETS)


def test_an_unknown_preset_is_refused_by_name(tmp_path):
    with pytest.raises(DataError, match="'huge'"):
        PretrainOptions(preset="huge", out=tmp_path / "x.safetensors")


def test_a_directory_is_refused_as_output(tmp_path):
    with pytest.raises(DataError, match="is a directory"):
        PretrainOptions(preset="nano", out=tmp_path)


def test_a_schedule_without_steps_is_refused(tmp_path):
    with pytest.raises(DataError, match="at least 1"):
        PretrainOptions(preset="nano", out=tmp_path / "x.safetensors", steps=0)
