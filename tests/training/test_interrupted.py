"""Runs that are killed or find no room: the last good checkpoint stays, and the command goes on.

Each run is a process of its own, since it is killed as the kernel kills, or given a bound on the
size of files, which is as good as a full disk.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import rancast
from kpi.catalogue import load_catalogue
from model.checkpoint import Checkpoint, file_digest, load_checkpoint, save_checkpoint
from model.config import PRESETS
from model.forecaster import Forecaster

REPOSITORY = Path(__file__).resolve().parents[2]

CHILD = """
import os, resource, signal, sys
import rancast
from model.config import PRESETS, ForecasterConfig
import training.fit
import training.pretrain

ending, kill_at, room_bytes, *arguments = sys.argv[1:]
PRESETS["nano"] = ForecasterConfig(
    width=16, layers=2, heads=2, feedforward=24, context_patches=4, horizon_patches=2
)
training.pretrain.CALIBRATION_BATCHES = 16
training.pretrain.SERIES = 2
step = training.fit._Run._step

def watched(run, stops):
    run.keeper._every_seconds = 0.0
    print("step", run.state.step + 1, flush=True)
    if ending == "kill" and run.state.step == int(kill_at):
        os.kill(os.getpid(), signal.SIGKILL)
    if ending == "full" and run.state.step == int(kill_at):
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(room_bytes), most))
    return step(run, stops)

training.fit._Run._step = watched
sys.argv = ["rancast", *arguments]
rancast.main()
"""

COMMANDS = {
    "train": ["train", "cells.csv", "--preset", "nano", "--series", "2", "--synthetic", "0"],
    "finetune": [
        *("finetune", "base.safetensors", "cells.csv", "--horizon", "8"),
        *("--history-steps", "96", "--series", "2", "--synthetic", "0"),
    ],
    "pretrain": ["pretrain", "cells.csv", "--preset", "nano", "--no-compile"],
}


@pytest.fixture
def folder(tmp_path, tiny_config, write_table) -> Path:
    """Data, a checkpoint to start from, and one of an earlier run where the new one is to go."""
    write_table(tmp_path / "cells.csv")
    torch.manual_seed(0)
    version = load_catalogue().version
    for name in ("base", "out"):
        weights = Forecaster(tiny_config).state_dict()
        save_checkpoint(
            Checkpoint(name, "earlier", tiny_config, weights, version),
            tmp_path / f"{name}.safetensors",
        )
    return Path(tmp_path)


def run(
    folder: Path, command: str, ending: str = "none", room_bytes: int = 0
) -> subprocess.CompletedProcess[str]:
    """Six steps of a command; `ending` comes upon the fourth."""
    return subprocess.run(
        [
            *(sys.executable, "-c", CHILD, ending, "3", str(room_bytes)),
            *(*COMMANDS[command], "--steps", "6", "--out", "out.safetensors"),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "COLUMNS": "300"},
        capture_output=True,
        text=True,
        check=False,
    )


def steps_of(result: subprocess.CompletedProcess[str]) -> list[int]:
    lines = result.stdout.splitlines()
    return [int(line.split()[1]) for line in lines if line.startswith("step ")]


def assert_new_and_finite(path: Path) -> None:
    checkpoint = load_checkpoint(path)
    assert checkpoint.training["steps"] == 6
    for tensor in checkpoint.weights.values():
        assert np.isfinite(tensor.numpy()).all()


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_killed_run_leaves_the_checkpoint_before_it_and_goes_on(folder, command):
    out = folder / "out.safetensors"
    before = file_digest(out)
    killed = run(folder, command, "kill")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert steps_of(killed) == [1, 2, 3, 4]
    assert file_digest(out) == before
    again = run(folder, command)
    assert again.returncode == 0, again.stderr
    assert steps_of(again) == [4, 5, 6]
    assert_new_and_finite(out)
    assert not out.with_name("out.safetensors.run").exists()


@pytest.mark.slow
def test_a_run_without_room_for_its_state_leaves_what_was_there_and_goes_on(folder):
    out = folder / "out.safetensors"
    before = file_digest(out)
    full = run(folder, "train", "full", 1_000)
    assert full.returncode == 2
    assert full.stderr.splitlines()[-1].startswith("rancast: ")
    assert not list(folder.glob("*.partial"))
    assert steps_of(full) == [1, 2, 3, 4]
    assert file_digest(out) == before
    again = run(folder, "train")
    assert again.returncode == 0, again.stderr
    assert steps_of(again) == [4, 5, 6]
    assert_new_and_finite(out)


@pytest.mark.parametrize("command", [*COMMANDS, "calibrate"])
def test_a_checkpoint_without_room_is_one_line_and_leaves_the_one_before_it(
    folder, command, tiny_config, monkeypatch
):
    monkeypatch.setitem(PRESETS, "nano", tiny_config)
    monkeypatch.setattr("training.pretrain.CALIBRATION_BATCHES", 16)
    monkeypatch.setattr("training.pretrain.SERIES", 2)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "300")
    calibrate = ["calibrate", "base.safetensors", "cells.csv", "--max-origins", "40"]
    options = [*COMMANDS[command], "--steps", "2"] if command in COMMANDS else calibrate
    out = folder / "out.safetensors"
    before = file_digest(out)

    write_bytes = Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        if path.name == f"{out.name}.partial":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(out))
        return write_bytes(path, content)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        result = CliRunner().invoke(rancast.app, [*options, "--out", str(out)])
    assert result.exit_code == 2, result.output
    assert result.stderr.splitlines()[-1].startswith("rancast: [Errno 28] No space left on device")
    assert file_digest(out) == before
    assert out.with_name("out.safetensors.run").exists() == (command in COMMANDS)
    again = CliRunner().invoke(rancast.app, [*options, "--out", str(out)])
    assert again.exit_code == 0, again.output
    assert file_digest(out) != before
    assert not out.with_name("out.safetensors.run").exists()
