"""Processes that share a run take the steps of one process, and end together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rancast
from model.checkpoint import load_checkpoint
from training.exit_status import BAD_INPUT, STOPPED

REPOSITORY = Path(__file__).resolve().parents[2]
MEMBER = Path(__file__).with_name("team_member.py")
TORCHRUN = "torch.distributed.run"
OURS = "training.torchrun"
SECONDS = 240

# Each start of two processes loads the tensor library twice.
pytestmark = pytest.mark.slow


def torchrun(launcher: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Two processes on this machine, which find each other over the loopback."""
    loopback = {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}
    return subprocess.run(
        [
            *(sys.executable, "-m", launcher, "--standalone", "--nproc-per-node", "2"),
            *map(str, arguments),
        ],
        env={**os.environ, **loopback, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> list[dict]:
    """What each of two processes saw of the runs of `team_member.py`."""
    folder = tmp_path_factory.mktemp("team")
    result = torchrun(OURS, MEMBER, "runs", folder)
    assert result.returncode == 0, result.stderr
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]


def assert_same_course(one: dict, two: dict) -> None:
    assert one["steps"] == two["steps"]
    assert one["training"] == pytest.approx(two["training"], rel=1e-5)
    for (step, loss), (other_step, other_loss) in zip(
        one["validation"], two["validation"], strict=True
    ):
        assert step == other_step
        assert loss == pytest.approx(other_loss, rel=1e-5)
    assert one["last"].keys() == two["last"].keys()
    for name, weights in one["last"].items():
        assert weights == pytest.approx(two["last"][name], abs=1e-4 * one["largest weight"])


@pytest.mark.parametrize(
    "name", ["whole batches", "batches in slices", "three batches for two", "early stop"]
)
def test_two_processes_have_the_losses_and_weights_of_one(found, name):
    leader, other = found
    assert_same_course(leader[f"{name}, alone"], leader[f"{name}, team"])
    assert leader[f"{name}, team"]["digest"] == other[f"{name}, team"]["digest"]


def test_both_processes_stop_early_at_the_same_step(found):
    courses = [part["early stop, team"] for part in found]
    assert courses[0]["stopped_early"]
    assert courses[0]["steps"] == courses[1]["steps"] < 20


def test_only_the_leader_tells_of_steps(found):
    leader, other = (part["whole batches, team"] for part in found)
    assert len(leader["training"]) == 8
    assert other["training"] == []


def test_the_processor_time_of_all_processes_is_counted(found):
    alone, team = (found[0][f"early stop, {who}"]["cpu_seconds"] for who in ("alone", "team"))
    assert team > 0
    assert alone > 0


def test_a_team_goes_on_from_the_state_of_one_process_that_its_leader_alone_has(found):
    leader, other = found
    assert leader["state kept"]
    assert len(leader["gone on"]["training"]) == 3
    assert_same_course(
        {**leader["gone on"], "training": []}, {**leader["whole batches, alone"], "training": []}
    )
    assert leader["gone on"]["digest"] == other["gone on"]["digest"]


def test_processes_with_other_settings_are_refused_by_all(found):
    for part in found:
        assert "got others in process 1 than in process 0" in part["other settings"]


def test_what_fails_in_one_process_fails_in_all_with_its_reason_and_status(found):
    assert found[0]["apart"] == ["PeerError", "process 1 of 2 failed: no such cells", BAD_INPUT]
    assert found[1]["apart"] == ["DataError", "no such cells", BAD_INPUT]


def test_a_failure_between_steps_ends_all_once_the_leader_has_told_its_reason(tmp_path):
    result = torchrun(OURS, MEMBER, "failure", tmp_path)
    assert result.returncode == BAD_INPUT, result.stderr
    reason = "the third batch is bad"
    leader, other = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert leader[:2] == ["PeerError", f"process 1 of 2 failed: {reason}"]
    assert other == ["DataError", reason, True]


def test_a_process_that_is_asked_to_stop_stops_all_after_the_same_step_and_the_leader_saves(
    tmp_path,
):
    result = torchrun(OURS, MEMBER, "stopped", tmp_path)
    assert result.returncode == STOPPED, result.stderr
    leader, other = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert (leader, other) == (["KeyboardInterrupt", 3], ["KeyboardInterrupt", None])
    assert steps_saved(tmp_path / "state") == 3


def steps_saved(path: Path) -> int:
    content = path.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    step: int = json.loads(header["__metadata__"]["story"])["step"]
    return step


def events(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def options(out: Path, data: Sequence[Path]) -> list[str]:
    return [
        *("train", *map(str, data), "--out", str(out), "--preset", "nano", "--steps", "3"),
        *("--series", "3", "--warmup-steps", "1", "--evaluate-every", "2", "--progress", "json"),
    ]


def test_torchrun_trains_the_checkpoint_of_one_process_and_only_its_leader_speaks(
    tmp_path, write_table
):
    data = [write_table(tmp_path / "cells.csv")]
    alone, team = tmp_path / "alone.safetensors", tmp_path / "team.safetensors"
    result = torchrun(TORCHRUN, "-m", "rancast", *options(team, data))
    assert result.returncode == 0, result.stderr
    assert [event["event"] for event in events(result.stdout)] == [
        *("start", "step", "step", "step", "done")
    ]
    assert events(result.stdout)[0]["processes"] == 2
    assert CliRunner().invoke(rancast.app, options(alone, data)).exit_code == 0
    cards = [load_checkpoint(path).training for path in (alone, team)]
    one, two = ([loss for _, loss in card["validation_losses"]] for card in cards)
    assert one == pytest.approx(two, rel=1e-5)
    assert cards[0]["data_digest"] == cards[1]["data_digest"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("alone.safetensors", "cells.csv", "team.safetensors")
    ]
