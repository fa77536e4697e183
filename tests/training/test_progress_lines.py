"""A program reads from the lines where a run stands, and nothing else is among them."""

from __future__ import annotations

import io
import json
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rancast
from model.checkpoint import Checkpoint, file_digest, save_checkpoint
from model.config import PRESETS
from model.forecaster import Forecaster
from training.exit_status import BAD_INPUT, FAILED, STOPPED
from training.fit import Progress
from training.progress_lines import LINE_SECONDS, JsonLines

PROGRESS = Progress(1, 100, 0.5, None, 2.5, 60.0)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def lines(stream, clock) -> JsonLines:
    return JsonLines(stream, clock)


def events(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_steps_are_told_now_and_then_and_every_validation(lines, stream, clock):
    for step in range(1, 101):
        clock.now += LINE_SECONDS / 20
        validation = None if step < 30 else 0.4 if step < 70 else 0.3
        lines.step(replace(PROGRESS, step=step, validation_loss=validation))
    told = events(stream.getvalue())
    assert [event["step"] for event in told] == [1, 21, 30, 50, 70, 90, 100]
    assert {event["event"] for event in told} == {"step"}
    assert {event["of"] for event in told} == {100}
    assert told[0]["validation"] is None
    assert told[2]["validation"] == 0.4
    assert told[-1]["seconds"] == pytest.approx(5 * LINE_SECONDS)


def test_trouble_is_told_at_once_and_so_is_its_end(lines, stream):
    for step, trouble in enumerate([None, None, "no store", "no store", None, None], 1):
        lines.step(replace(PROGRESS, step=step, trouble=trouble))
    told = [(event["step"], event["trouble"]) for event in events(stream.getvalue())]
    assert told == [(1, None), (3, "no store"), (5, None)]


def test_a_figure_that_is_no_number_is_null_so_that_every_line_is_json(lines, stream):
    lines.step(replace(PROGRESS, loss=math.nan, validation_loss=math.inf))
    (event,) = events(stream.getvalue())
    assert (event["loss"], event["validation"]) == (None, None)


@pytest.mark.parametrize(
    ("error", "reason", "status"),
    [
        (ValueError("expected\ntwo lines"), "expected\ntwo lines", BAD_INPUT),
        (OSError("disk full"), "disk full", FAILED),
        (MemoryError(), "MemoryError", FAILED),
        (KeyboardInterrupt(), "stopped by Ctrl-C or SIGTERM", STOPPED),
    ],
)
def test_an_error_is_one_line_with_its_reason_and_status(lines, stream, error, reason, status):
    lines.error(error)
    assert events(stream.getvalue()) == [{"event": "error", "reason": reason, "status": status}]


def test_a_run_goes_on_where_nobody_reads_any_more():
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        lines = JsonLines(stream)
        for step in range(1, 4):
            lines.step(replace(PROGRESS, step=step, validation_loss=1 / step))


@pytest.fixture
def folder(tmp_path, tiny_config, write_table, monkeypatch) -> Path:
    """Data, a checkpoint to start from, and presets that train in no time."""
    monkeypatch.setitem(PRESETS, "nano", tiny_config)
    monkeypatch.setattr("training.pretrain.CALIBRATION_BATCHES", 8)
    monkeypatch.setattr("training.pretrain.SERIES", 2)
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "cells.csv")
    weights = Forecaster(tiny_config).state_dict()
    save_checkpoint(Checkpoint("base", "1", tiny_config, weights, "1"), Path("base.safetensors"))
    return Path(tmp_path)


COMMANDS = {
    "train": ["train", "cells.csv", "--preset", "nano", "--series", "2"],
    "finetune": ["finetune", "base.safetensors", "cells.csv", "--horizon", "8", "--series", "2"],
    "pretrain": ["pretrain", "cells.csv", "--preset", "nano", "--no-compile"],
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("folder")
def test_stdout_holds_the_lines_alone_and_the_last_names_the_checkpoint(command):
    options = ["--steps", "2", "--out", "out.safetensors", "--progress", "json"]
    result = CliRunner().invoke(rancast.app, [*COMMANDS[command], *options])
    assert result.exit_code == 0, result.output
    start, *steps, done = events(result.stdout)
    assert start == {
        "event": "start",
        "command": command,
        "of": 2,
        "checkpoint": "out.safetensors",
        "processes": 1,
    }
    assert [event["step"] for event in steps] == [1, 2]
    assert done["event"] == "done"
    assert (done["step"], done["of"]) == (2, 2)
    assert done["digest"] == file_digest(Path(done["checkpoint"]))


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        (["nowhere.csv"], "nowhere.csv: expected a file or a folder"),
        (["--warmup-steps", "-1"], "warmup_steps"),
        (["--preset", "huge"], "huge"),
        (["--out", "cells.csv/out.safetensors"], "cells.csv/out.safetensors cannot be written"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_no_repetition_mends_ends_before_the_first_step_with_its_status(extra, reason):
    options = [*COMMANDS["train"], "--out", "out.safetensors", "--progress", "json"]
    result = CliRunner().invoke(rancast.app, [*options, *extra])
    assert result.exit_code == BAD_INPUT, result.output
    told = events(result.stdout)
    assert told[-1]["event"] == "error"
    assert reason in told[-1]["reason"]
    assert told[-1]["status"] == BAD_INPUT
    assert not [event for event in told if event["event"] == "step"]
    assert result.stderr.startswith("rancast: ")


def test_a_misspelt_option_is_no_matter_of_repetition_either():
    result = CliRunner().invoke(rancast.app, ["train", "--out", "x", "--stepz", "3"])
    assert result.exit_code == BAD_INPUT
    assert "--stepz" in result.stderr
    assert CliRunner().invoke(rancast.app, ["plan", "--stepz", "3"]).exit_code == 2


@pytest.mark.usefixtures("folder")
def test_by_default_stdout_stays_empty():
    result = CliRunner().invoke(
        rancast.app, [*COMMANDS["train"], "--steps", "2", "--out", "out.safetensors"]
    )
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert "step 2 of 2" in result.stderr
