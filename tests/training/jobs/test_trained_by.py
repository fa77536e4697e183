"""The command of a job is checked before anything is started, and told what it can be told."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import ANY

import pytest
import typer

from training.jobs import trained_by
from training.jobs.errors import JobSpecError
from training.jobs.trained_by import checked_command

TRAIN = ("train", "cells", "--out", "x")


@pytest.fixture
def learn(monkeypatch: pytest.MonkeyPatch) -> None:
    def learn(out: Path, progress: str = typer.Option("bar")) -> None:
        """A command without threads."""

    monkeypatch.setattr(trained_by, "_commands", lambda: {"learn": learn})


@pytest.mark.usefixtures("learn")
def test_a_command_that_can_tell_its_progress_is_told_to() -> None:
    said = checked_command(["learn", "x"], threads=2).arguments
    assert said == ("learn", "--progress", "json", "x")
    told = ("learn", "x", "--progress=bar")
    assert checked_command(told, threads=2).arguments == told


@pytest.mark.parametrize("name", ["train", "finetune", "pretrain", "calibrate"])
def test_every_command_that_trains_is_told_what_it_can_be(name: str) -> None:
    base = ("base",) if name in ("finetune", "calibrate") else ()
    given = (*base, "cells", "--out", "x")
    # A calibration keeps no state that could be of other data.
    named = () if name == "calibrate" else ("--run-name", ANY)
    told = ("--progress", "json", "--threads", "3", *named)
    assert checked_command([name, *given], threads=3).arguments == (name, *told, *given)


def test_a_run_is_called_by_its_command_alone() -> None:
    def name(*options: str, threads: int = 1) -> str:
        words = checked_command([*TRAIN, *options], threads=threads).arguments
        return words[words.index("--run-name") + 1]

    assert name() == name(threads=2)
    assert name() != name("--steps", "3")
    assert name("--run-name", "mine") == "mine"


@pytest.mark.parametrize("said", [("--threads", "1"), ("--threads=4",)])
def test_threads_that_were_said_stay(said: tuple[str, ...]) -> None:
    found = checked_command([*TRAIN, *said], threads=3).arguments
    assert found == ("train", "--progress", "json", "--run-name", ANY, *TRAIN[1:], *said)


def test_threads_are_the_commands_own_where_nobody_says_them() -> None:
    assert "--threads" not in checked_command(TRAIN).arguments


def test_the_place_of_the_checkpoint_is_known_however_it_is_written() -> None:
    assert checked_command(TRAIN).out == "x"
    assert checked_command(["train", "--out=s3://ran/x"]).out == "s3://ran/x"


def test_a_calibration_is_not_shared_by_processes() -> None:
    with pytest.raises(JobSpecError, match="expected one process for calibrate, got 2"):
        checked_command(["calibrate", "base", "cells", "--out", "x"], processes=2)
