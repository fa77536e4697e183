"""A run measures what is at hand, reads the rest, and never passes one off as the other."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from benchmarks.accuracy import command, parts, rivals, subjects
from benchmarks.accuracy.exam import TASKS
from benchmarks.accuracy.rows import OPPONENTS
from benchmarks.accuracy.sheet import Sheet, read_sheet, write_sheet
from benchmarks.harness import Unavailable
from model.checkpoint import load_checkpoint, save_checkpoint

SCORES = {"WQL": 0.3, "MASE": 1.0, "WAPE": 0.4, "cov80": 0.8}


@pytest.fixture
def shipped(checkpoint, monkeypatch, tmp_path):
    """The shipped checkpoint, alone."""
    path = tmp_path / "shipped" / "rancast-small.safetensors"
    save_checkpoint(checkpoint, path)
    for module in (subjects, command):
        monkeypatch.setattr(
            module, "shipped_path", lambda model: path.with_name(f"rancast-{model}.safetensors")
        )
    return path


@pytest.fixture
def measured(monkeypatch):
    """Names of the parts that were measured; each gives the same scores."""
    names: list[str] = []

    def stub(name):
        def part(_checkpoint, _bench):
            names.append(name)
            return dict.fromkeys(TASKS, SCORES)

        return part

    stubs = {name: stub(name) for name in parts.MODEL_PARTS}
    monkeypatch.setattr(command, "MODEL_PARTS", stubs)
    monkeypatch.setattr(parts, "opponents", lambda _: {"last value": {"lte_hourly": SCORES}})
    return names


@pytest.mark.usefixtures("yardstick", "shipped")
def test_a_full_run_measures_all_parts_and_writes_the_sheets(measured, tmp_path):
    found = list(command.measure(False, checkpoints=tmp_path, results=tmp_path / "results"))
    assert measured == list(parts.MODEL_PARTS)
    sheet = read_sheet("rancast-small-seed0", tmp_path / "results")
    assert sheet is not None
    assert set(sheet.parts) == set(parts.MODEL_PARTS)
    assert read_sheet(OPPONENTS, tmp_path / "results") is not None
    assert "accuracy.lte_hourly.tuned" in {row.id for row in found}


@pytest.mark.usefixtures("yardstick")
def test_a_quick_run_measures_a_little_writes_nothing_and_reads_the_rest(
    shipped, measured, tmp_path
):
    digest = rivals.identity(load_checkpoint(shipped))
    tuned = {"tuned": dict.fromkeys(TASKS, SCORES)}
    write_sheet(Sheet("rancast-small-seed0", digest, parts=tuned), tmp_path)
    write_sheet(Sheet("rancast-small-seed1", parts=tuned), tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.glob("*.json")}
    found = {row.id: row for row in command.measure(True, checkpoints=tmp_path, results=tmp_path)}
    assert measured == list(parts.QUICK_PARTS)
    assert {path: path.read_bytes() for path in tmp_path.glob("*.json")} == before
    assert found["accuracy.lte_hourly.zero_shot"].detail["measured_now_seeds"] == "0"
    assert found["accuracy.lte_hourly.tuned"].detail["read_seeds"] == "0,1"


@pytest.mark.usefixtures("yardstick", "shipped", "measured")
def test_sheets_of_other_weights_are_not_read_for_a_checkpoint_at_hand(tmp_path):
    tuned = {"tuned": dict.fromkeys(TASKS, SCORES)}
    write_sheet(Sheet("rancast-small-seed0", "sha256:other", parts=tuned), tmp_path)
    found = {row.id for row in command.measure(True, checkpoints=tmp_path, results=tmp_path)}
    assert "accuracy.lte_hourly.tuned" not in found


@pytest.mark.usefixtures("yardstick")
def test_a_run_that_was_stopped_goes_on_with_the_parts_that_lack(shipped, measured, tmp_path):
    digest = rivals.identity(load_checkpoint(shipped))
    done = {"zero_shot": dict.fromkeys(TASKS, SCORES)}
    write_sheet(Sheet("rancast-small-seed0", digest, parts=done), tmp_path)
    list(command.measure(False, checkpoints=tmp_path, results=tmp_path, reuse=True))
    assert measured == [name for name in parts.MODEL_PARTS if name != "zero_shot"]


@pytest.mark.usefixtures("yardstick", "shipped")
def test_the_sheet_of_a_seed_is_written_under_its_name(checkpoint, measured, tmp_path):
    path = tmp_path / "rancast-base-seed2.safetensors"
    save_checkpoint(checkpoint, path)
    assert command.record_seed(path, False, tmp_path).name == "accuracy-rancast-base-seed2.json"
    assert measured == list(parts.MODEL_PARTS)


@pytest.mark.usefixtures("shipped")
def test_a_file_of_another_name_is_nobodys_checkpoint(tmp_path):
    with pytest.raises(Unavailable, match=r"rancast-small-seed1\.safetensors"):
        subjects.subject_of(tmp_path / "mine.safetensors")


def test_the_shipped_file_is_seed_zero(shipped):
    assert subjects.subject_of(shipped).name == "rancast-small-seed0"
    assert subjects.subject_of(shipped).seed == 0


@pytest.mark.usefixtures("yardstick")
def test_scores_are_recorded_in_the_card_of_a_checkpoint(checkpoint, tmp_path, capsys):
    path = tmp_path / "copy.safetensors"
    save_checkpoint(replace(checkpoint, evaluation={}), path)
    command.run(["--record", str(path)])
    recorded = load_checkpoint(path)
    assert set(recorded.evaluation) == set(TASKS)
    for scores in recorded.evaluation.values():
        assert {"rancast", "seasonal naive", "last value"} <= set(scores)
    assert recorded.digest in capsys.readouterr().out
    assert recorded.training == checkpoint.training
    assert rivals.identity(recorded) == rivals.identity(checkpoint)


@pytest.mark.usefixtures("yardstick", "shipped", "measured")
def test_figures_are_printed_as_json_lines(capsys, tmp_path):
    command.run(["--quick", "--json", "--checkpoints", str(tmp_path)])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"accuracy.lte_hourly.zero_shot", "accuracy.tractor_1s.unseen_runs"} <= {
        row["id"] for row in rows
    }


def test_training_an_opponent_ends_with_its_sheet(shipped, monkeypatch, tmp_path):
    trained, recorded = [], []

    def train_rival(rival, like, _catalogue, folder, *, steps, on_progress):
        trained.append((rival.name, like.name, steps, on_progress))
        return folder / f"{rival.name}.safetensors"

    def record_seed(path, _reuse):
        recorded.append(path.name)
        return path

    monkeypatch.setattr(rivals, "train_rival", train_rival)
    monkeypatch.setattr(command, "record_seed", record_seed)
    command.run(["--train-positions", "--checkpoints", str(tmp_path)])
    names = ["position-rope", "position-alibi", "position-none"]
    assert [name for name, *_ in trained] == names
    assert recorded == [f"{name}.safetensors" for name in names]
    command.run(["--train-positions", "--steps", "2", "--checkpoints", str(tmp_path)])
    assert len(recorded) == 3
    assert trained[-1][2] == 2
    assert shipped.is_file()
