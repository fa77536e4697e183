"""The command writes a calibrated checkpoint with the same weights, and shows what that did."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

import rancast
from model.calibration import Calibration, step_buckets
from model.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from model.forecaster import Forecaster
from training.calibrate_cli import CalibrateOptions, calibrate_with_progress
from training.errors import DataError
from training.session import Session
from training.team import Team


@pytest.fixture
def checkpoint(tiny_config) -> Checkpoint:
    torch.manual_seed(0)
    weights = Forecaster(tiny_config).state_dict()
    return Checkpoint("tiny", "0", tiny_config, weights, "test", evaluation={"task": 1})


@pytest.fixture
def run(tmp_path, checkpoint, write_table):
    """Runs the command on a table of two cells; gives its output and what it wrote."""

    def call(*options, base=checkpoint, steps=400, code=0):
        before, out = tmp_path / "before.safetensors", tmp_path / "after.safetensors"
        save_checkpoint(base, before)
        data = write_table(tmp_path / "cells.csv", steps=steps)
        result = CliRunner().invoke(
            rancast.app, ["calibrate", str(before), str(data), "--out", str(out), *options]
        )
        assert result.exit_code == code, result.output
        return result.output, load_checkpoint(out) if out.exists() else None

    return call


def test_weights_stay_and_the_calibration_tells_its_story(run, checkpoint):
    output, found = run("--max-origins", "80", "--horizon", "8")
    assert found.calibration is not None
    assert found.calibration.provenance["horizon"] == 8
    assert found.evaluation == {"task": 1}
    assert found.weights.keys() == checkpoint.weights.keys()
    for name, tensor in checkpoint.weights.items():
        assert torch.equal(found.weights[name], tensor)
    assert "RRU.PrbTotDl" in output
    assert "judged on the last third" in output
    assert "checkpoint written to" in output


def test_kinds_that_the_data_lack_keep_what_they_had(run, checkpoint, tiny_config):
    first_steps = step_buckets(tiny_config.max_horizon)
    rows = tuple((0.5,) * len(tiny_config.levels) for _ in first_steps)
    kept = Calibration(
        tiny_config.levels, first_steps, {"delay": rows, "percent": rows}, rows, {}, {"data": "old"}
    )
    _, found = run("--max-origins", "80", base=replace(checkpoint, calibration=kept))
    assert found.calibration.shifts["delay"] == rows
    assert found.calibration.shifts["percent"] != rows
    assert found.calibration.provenance["kept"]["delay"] == {"data": "old"}


def test_a_history_too_short_is_one_line_and_writes_nothing(run):
    output, found = run(steps=30, code=42)
    assert "expected a cell with more than 32 samples" in output
    assert found is None


@pytest.mark.parametrize("calibrated", [True, False])
def test_the_card_says_how_quantiles_are_calibrated(run, tmp_path, calibrated):
    run("--max-origins", "80")
    name = "after" if calibrated else "before"
    command = ["model", "--checkpoint", str(tmp_path / f"{name}.safetensors")]
    output = CliRunner().invoke(rancast.app, command).output
    assert ("CQR-r" in output) == calibrated
    assert ("quantiles are as trained" in output) != calibrated


def test_a_place_that_cannot_be_written_ends_it_before_anything_is_read(tmp_path):
    out = tmp_path / "a-file" / "after.safetensors"
    out.parent.touch()
    command = ["calibrate", "no-such.safetensors", "no-such.csv", "--out", str(out)]
    result = CliRunner().invoke(rancast.app, command)
    assert result.exit_code == 42, result.output
    assert f"{out} cannot be written" in result.stderr


def test_data_that_are_not_there_are_the_last_line_of_the_report(tmp_path, checkpoint):
    save_checkpoint(checkpoint, tmp_path / "base.safetensors")
    command = ["calibrate", str(tmp_path / "base.safetensors"), "no-such.csv", "--progress", "json"]
    result = CliRunner().invoke(rancast.app, [*command, "--out", str(tmp_path / "x.safetensors")])
    assert result.exit_code == 42, result.output
    told = json.loads(result.stdout.splitlines()[-1])
    assert told["event"] == "error"
    assert "no-such.csv: expected a file or a folder" in told["reason"]


def test_a_folder_in_the_place_of_the_checkpoint_is_refused(tmp_path):
    command = ["calibrate", "base.safetensors", "no-such.csv", "--out", str(tmp_path)]
    result = CliRunner().invoke(rancast.app, command)
    assert result.exit_code == 42, result.output
    assert "is a directory" in result.stderr


def test_several_processes_do_not_write_one_calibration(tmp_path, catalogue):
    options = CalibrateOptions(Path("base"), (Path("cells.csv"),), tmp_path / "x.safetensors")
    around = Session(Console(quiet=True), team=Team(size=2))
    with pytest.raises(DataError, match="expected one process"):
        calibrate_with_progress(options, catalogue, around)


def test_it_computes_with_as_many_threads_as_it_is_told(run, monkeypatch):
    asked: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    run("--max-origins", "40", "--threads", "2")
    assert asked == [2]
    output, _ = run("--threads", "0", code=42)
    assert "threads of at least 1" in output
