"""Data that are no good: used as far as they can be, or refused by name with the reason.

Each command that learns from files is given each kind of them; `test_backtest_cli.py` does the same
for `rancast backtest`. Whatever a command writes holds numbers only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner, Result

import rancast
from model.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from model.config import PRESETS
from model.forecaster import Forecaster
from training.exit_status import BAD_INPUT

HOUR = np.timedelta64(1, "h")
QUARTER = np.timedelta64(15, "m")
START = np.datetime64("2026-01-05T00:00")
GREATEST = 3e38

Row = tuple[np.datetime64, str, str]
Command = Callable[[str], list[str]]

COMMANDS: dict[str, Command] = {
    "train": lambda data: [
        *("train", data, "--preset", "nano", "--steps", "2", "--series", "4"),
        *("--synthetic", "0.3", "--warmup-steps", "1", "--evaluate-every", "2"),
    ],
    "finetune": lambda data: [
        *("finetune", "base.safetensors", data, "--steps", "2", "--horizon", "8"),
        *("--history-steps", "96", "--series", "4"),
    ],
    "calibrate": lambda data: [
        *("calibrate", "base.safetensors", data, "--max-origins", "80", "--horizon", "8"),
    ],
    "pretrain": lambda data: [
        *("pretrain", data, "--preset", "nano", "--steps", "2", "--no-compile"),
    ],
}


def load(hour: float) -> str:
    """A daily rhythm and something beside it."""
    return f"{50 + 30 * np.sin(hour / 24 * 2 * np.pi) + hour * 37 % 11:.2f}"


def rows(
    cell: str,
    count: int,
    *,
    step: np.timedelta64 = HOUR,
    start: np.datetime64 = START,
    value: Callable[[float], str] = load,
) -> list[Row]:
    """Samples in a row."""
    hours = [float(place * (step / HOUR)) for place in range(count)]
    return [(start + place * step, cell, value(hours[place])) for place in range(count)]


def thinned(samples: Sequence[Row], *, blank: bool) -> list[Row]:
    """One sample in ten is left; the others are blank, or not there at all."""
    kept = np.random.default_rng(0).random(len(samples)) < 0.1
    if not blank:
        return [row for row, is_kept in zip(samples, kept, strict=True) if is_kept]
    return [row if is_kept else (*row[:2], "") for row, is_kept in zip(samples, kept, strict=True)]


USABLE = {
    "two samplings in two cells": rows("a", 300) + rows("b", 600, step=QUARTER),
    "two samplings in one cell": rows("a", 300) + rows("a", 900, step=QUARTER),
    "a sampling that changes on the way": (
        rows("a", 300) + rows("a", 900, step=QUARTER, start=START + 300 * HOUR)
    ),
    "less than two days": rows("a", 180, step=QUARTER),
    "nine tenths blank": thinned(rows("a", 600), blank=True),
    "nine tenths not there": thinned(rows("a", 4_000), blank=False),
    "words among the numbers": rows("a", 300, value=lambda hour: "" if hour % 3 else load(hour))
    + rows("b", 300, value=lambda hour: "n/a" if hour % 3 == 0 else load(hour)),
    "a clock that jumped forward": rows("a", 200) + rows("a", 200, start=START + 500 * HOUR),
    "a clock that jumped back": rows("a", 300) + rows("a", 200, start=START + 250 * HOUR),
    "every stamp twice": rows("a", 300) + rows("a", 300, value=lambda _: "7"),
    "a stamp of 1970": rows("a", 300) + rows("a", 1, start=np.datetime64("1970-01-01T00:00")),
    "a stamp of 2099": rows("a", 300) + rows("a", 1, start=np.datetime64("2099-01-01T00:00")),
    "a constant": rows("a", 300, value=lambda _: "5"),
    "zeros": rows("a", 300, value=lambda _: "0"),
    "the greatest numbers": rows("a", 300, value=lambda hour: f"{GREATEST * (-1) ** int(hour)}"),
}

SINGLE = [*rows("a", 300), *rows("b", 1)]

REFUSED = {
    "one sample": (rows("a", 1), "expected two time stamps"),
    "a few samples": (rows("a", 30), "the longest has|forecasts with a value to calibrate on"),
    "words alone": (rows("a", 300, value=lambda _: "up"), "numeric column"),
    "nothing but blanks": (rows("a", 300, value=lambda _: ""), "numeric column|cells with values"),
}


@pytest.fixture
def run(tmp_path, tiny_config, monkeypatch) -> Callable[[str, Sequence[Row]], Result]:
    """Runs a command on a table in an empty folder, with a forecaster that trains in no time."""
    monkeypatch.setitem(PRESETS, "nano", tiny_config)
    monkeypatch.setattr("training.pretrain.CALIBRATION_BATCHES", 16)
    monkeypatch.setattr("training.pretrain.SERIES", 2)
    monkeypatch.setattr("training.pretrain.RECORDED_RATIO", 0.9)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")
    torch.manual_seed(0)
    weights = Forecaster(tiny_config).state_dict()
    save_checkpoint(
        Checkpoint("base", "1", tiny_config, weights, "1"), tmp_path / "base.safetensors"
    )

    def call(command: str, samples: Sequence[Row]) -> Result:
        lines = [f"{time}Z,{cell},{value}" for time, cell, value in samples]
        text = "\n".join(["timestamp,cell_id,Vendor.Counter", *lines])
        Path("cells.csv").write_text(text + "\n", encoding="utf-8")
        options = [*COMMANDS[command]("cells.csv"), "--out", "out.safetensors"]
        return CliRunner().invoke(rancast.app, options)

    return call


def assert_numbers_only(path: Path) -> None:
    """Weights and shifts of a checkpoint are finite."""
    checkpoint = load_checkpoint(path)
    assert all(bool(torch.isfinite(tensor).all()) for tensor in checkpoint.weights.values())
    if checkpoint.calibration is not None:
        tables = [*checkpoint.calibration.shifts.values(), checkpoint.calibration.other]
        assert all(np.isfinite(np.array(table)).all() for table in tables)


@pytest.mark.parametrize("data", USABLE)
@pytest.mark.parametrize("command", COMMANDS)
def test_data_that_are_odd_are_used_and_give_numbers_only(run, command, data):
    result = run(command, USABLE[data])
    assert result.exit_code == 0, result.output
    assert_numbers_only(Path("out.safetensors"))


@pytest.mark.parametrize("data", REFUSED)
@pytest.mark.parametrize("command", COMMANDS)
def test_data_of_no_use_are_refused_in_one_line_that_names_them(run, command, data):
    samples, reason = REFUSED[data]
    result = run(command, samples)
    assert result.exit_code == BAD_INPUT, result.output
    (line,) = (line for line in result.stderr.splitlines() if line.startswith("rancast: "))
    assert result.stderr.endswith(f"{line}\n")
    assert "cells.csv" in line
    assert [word for word in reason.split("|") if word in result.output]
    assert not Path("out.safetensors").exists()
    assert not Path("out.safetensors.run").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_cell_of_one_sample_does_not_keep_the_others_from_being_used(run, command):
    result = run(command, SINGLE)
    assert result.exit_code == 0, result.output
    assert_numbers_only(Path("out.safetensors"))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_counter_of_words_is_left_out_and_named_and_the_others_are_used(run, command):
    run(command, rows("a", 300))  # makes the folder
    lines = [f"{time}Z,{cell},{value},up" for time, cell, value in rows("a", 300)]
    text = "\n".join(["timestamp,cell_id,Vendor.Counter,Vendor.State", *lines])
    Path("cells.csv").write_text(text + "\n", encoding="utf-8")
    Path("out.safetensors").unlink()
    options = [*COMMANDS[command]("cells.csv"), "--out", "out.safetensors"]
    result = CliRunner().invoke(rancast.app, options)
    assert result.exit_code == 0, result.output
    card = load_checkpoint(Path("out.safetensors")).training
    assert card.get("kpis", ["Vendor.Counter"]) == ["Vendor.Counter"]


def test_a_recording_too_short_to_calibrate_on_is_refused_before_the_first_step(run):
    result = run("pretrain", rows("a", 150, step=QUARTER))
    assert result.exit_code == BAD_INPUT
    assert "in its last 10%; the longest has 150" in result.stderr
    assert "step" not in result.stderr
    assert not Path("out.safetensors.run").exists()


def test_tuning_to_zeros_says_that_the_held_back_period_does_not_tell(run):
    run("finetune", USABLE["zeros"])
    card = load_checkpoint(Path("out.safetensors")).training
    assert card["weights"].startswith("those of the base: the held-back period does not tell")


def test_the_later_of_two_values_for_one_stamp_is_learnt_from(run):
    run("train", USABLE["every stamp twice"])
    doubled = load_checkpoint(Path("out.safetensors")).training["data_digest"]
    run("train", rows("a", 300, value=lambda _: "7"))
    assert load_checkpoint(Path("out.safetensors")).training["data_digest"] == doubled


def test_the_finest_sampling_of_a_cell_is_learnt_from(run):
    run("train", USABLE["two samplings in two cells"])
    card = load_checkpoint(Path("out.safetensors")).training
    assert card["step_seconds"] == [900.0, 3600.0]
    run("train", USABLE["two samplings in one cell"])
    assert load_checkpoint(Path("out.safetensors")).training["step_seconds"] == [900.0]
