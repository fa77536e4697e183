"""What the terminal says while a run trains and when it is stopped."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from kpi.errors import UnreadableFileError
from training.cli import train_with_progress
from training.fit import Progress
from training.fit_config import FitConfig
from training.session import Session
from training.train import TrainOptions


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO(), record=True, width=80, force_terminal=True)


@pytest.fixture
def options(tmp_path) -> TrainOptions:
    return TrainOptions(out=tmp_path / "mine.safetensors", fit=FitConfig(steps=100))


def test_the_bar_shows_loss_speed_and_time_left(options, catalogue, console, monkeypatch):
    def train(_options, _catalogue, on_error, on_progress, _team):
        on_progress(Progress(40, 100, 0.51234, None, 2.5, 3725.0))
        on_progress(Progress(50, 100, 0.41234, 0.39876, 2.5, 3725.0))
        on_error(UnreadableFileError("bad.xml", "no XML"))

    monkeypatch.setattr("training.cli.train", train)
    assert train_with_progress(options, catalogue, Session(console)) == 1
    text = console.export_text()
    assert "50/100" in text
    assert "loss 0.4123 validation 0.3988" in text
    assert "2.5 steps/s, 1:02:05 left" in text
    assert "not read: bad.xml: no XML" in text
    assert "checkpoint written to" in text


TROUBLE = [None, "no store", "no store", None]


@pytest.mark.parametrize("terminal", [True, False])
def test_trouble_is_said_once_whether_there_is_a_bar_or_not(
    options, catalogue, monkeypatch, terminal
):
    def train(_options, _catalogue, _on_error, on_progress, _team):
        for step, trouble in enumerate(TROUBLE, 1):
            on_progress(Progress(step, 100, 0.5, None, 2.5, 60.0, trouble))

    monkeypatch.setattr("training.cli.train", train)
    file = io.StringIO()
    console = Console(file=file, width=120, force_terminal=terminal)
    train_with_progress(options, catalogue, Session(console))
    assert file.getvalue().count("no store") == 1


def test_a_stopped_run_says_how_to_go_on(options, catalogue, console, monkeypatch):
    def train(*_):
        options.state_path.touch()
        raise KeyboardInterrupt

    monkeypatch.setattr("training.cli.train", train)
    with pytest.raises(KeyboardInterrupt):
        train_with_progress(options, catalogue, Session(console))
    text = console.export_text()
    assert "the same command goes on from" in text
    assert options.state_path.name in text.replace("\n", "")
    assert "written" not in text


def test_a_run_stopped_before_its_first_state_promises_nothing(
    options, catalogue, console, monkeypatch
):
    def train(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("training.cli.train", train)
    with pytest.raises(KeyboardInterrupt):
        train_with_progress(options, catalogue, Session(console))
    assert "goes on from" not in console.export_text()


def test_a_log_file_gets_a_line_now_and_then(options, catalogue, monkeypatch):
    def train(_options, _catalogue, _on_error, on_progress, _team):
        for step in range(1, 251):
            on_progress(Progress(step, 250, 0.5, None, 2.5, 60.0))

    monkeypatch.setattr("training.cli.train", train)
    file = io.StringIO()
    train_with_progress(options, catalogue, Session(Console(file=file, width=80)))
    lines = [line for line in file.getvalue().splitlines() if line.startswith("step")]
    assert [line.split(":")[0] for line in lines] == [
        "step 100 of 250",
        "step 200 of 250",
        "step 250 of 250",
    ]
