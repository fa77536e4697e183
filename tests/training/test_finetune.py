"""`rancast finetune` from end to end: a checkpoint that tells its story, or the one before."""

from __future__ import annotations

import errno
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

import rancast
from kpi.errors import UnreadableFileError
from model.checkpoint import Checkpoint, file_digest, load_checkpoint, save_checkpoint
from model.errors import CheckpointError
from model.forecaster import Forecaster
from model.transformer import TransformerPredictor
from training.errors import DataError, DivergedError, ResumeError
from training.finetune import FinetuneOptions, finetune
from training.finetune_cli import finetune_with_progress
from training.fit import Progress
from training.session import Session
from training.tuning import TuneConfig

TUNE = TuneConfig(
    horizon=12, history_steps=96, steps=30, learning_rate=1e-2, series=8, synthetic_ratio=0.0
)
STILL = replace(TUNE, steps=2, learning_rate=1e-30)


def ignore(_) -> None:
    pass


def options_in(folder: Path, make_window, config, catalogue) -> FinetuneOptions:
    """An untrained checkpoint and a table of two cells."""
    torch.manual_seed(0)
    base = folder / "base.safetensors"
    save_checkpoint(
        Checkpoint(
            name="base",
            version="1.2",
            config=config,
            weights=Forecaster(config).state_dict(),
            catalogue_version=catalogue.version,
            training={"data": ["synthetic cells"]},
            evaluation={"elsewhere": {"wql": 0.3}},
        ),
        base,
    )
    table = folder / "cells.csv"
    lines = ["timestamp,cell_id,RRU.PrbTotDl"]
    for window in (make_window(seed, steps=300) for seed in range(2)):
        ends = range(window.start_ms, window.end_ms, window.step_ms)
        lines += [
            f"{np.datetime64(end, 'ms')}Z,{window.cell},{value:.3f}"
            for end, value in zip(ends, window.values[0], strict=True)
        ]
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return FinetuneOptions(base=base, data=(table,), out=folder / "mine.safetensors", tune=STILL)


@pytest.fixture
def options(tmp_path, make_window, tiny_config, catalogue) -> FinetuneOptions:
    """A run of two steps that change nothing."""
    return options_in(tmp_path, make_window, tiny_config, catalogue)


@pytest.fixture(scope="module")
def better(tmp_path_factory, make_window, tiny_config, catalogue) -> FinetuneOptions:
    """A run that has made the forecasts better."""
    folder = tmp_path_factory.mktemp("better")
    options = replace(options_in(folder, make_window, tiny_config, catalogue), tune=TUNE)
    finetune(options, catalogue, ignore)
    return options


def same(one, two) -> bool:
    return all(torch.equal(one[name], two[name]) for name in one)


def stop(progress) -> None:
    if progress.step == 1:
        raise KeyboardInterrupt


def test_the_card_tells_where_the_weights_come_from(better):
    found = load_checkpoint(better.out)
    story = found.training
    assert (found.name, found.version) == ("mine", "1.2")
    assert story["base"] == {
        "name": "base",
        "version": "1.2",
        "digest": file_digest(better.base),
        "training": {"data": ["synthetic cells"]},
    }
    assert story["data"] == ["cells.csv"]
    assert story["data_digest"].startswith("sha256:")
    assert story["cells"] == 2
    assert story["kpis"] == ["RRU.PrbTotDl"]
    assert story["tune"]["seed"] == 0
    assert story["fit"]["learning_rate"] == 1e-2
    assert story["steps"] == 30
    assert story["tuned_share"] == 1
    assert story["weights"].startswith("tuned: +")


def test_the_card_holds_the_scores_of_both(better):
    scores = load_checkpoint(better.out).evaluation["held_back"]
    assert scores["tuned"]["wql"] < scores["zero_shot"]["wql"]
    assert scores["gain"] > scores["gain_needed"] > 0
    assert scores["origins"] > 16
    assert scores["horizon"] == 12
    assert set(scores["tuned"]["kpis"]) == {"RRU.PrbTotDl"}


def test_it_ends_with_a_calibration_on_the_held_back_part(better):
    found = load_checkpoint(better.out).calibration
    assert found is not None
    assert found.provenance["calibration_ratio"] == pytest.approx(0.15)
    assert found.provenance["history_steps"] == 96


def test_runs_held_back_whole_calibrate_too(options, catalogue, make_window, monkeypatch):
    day_ms = 86_400_000
    runs = [
        replace(make_window(seed, steps=100), start_ms=seed * 20 * day_ms) for seed in range(10)
    ]
    monkeypatch.setattr("training.finetune.load_windows", lambda *_: runs)
    finetune(options, catalogue, ignore)
    found = load_checkpoint(options.out)
    assert found.evaluation["held_back"]["whole_runs"]
    assert found.calibration is not None
    assert found.calibration.provenance["cells"] == 2


def test_too_little_to_calibrate_on_is_said_in_the_card(options, catalogue, monkeypatch):
    def refuse(*_):
        raise DataError("too few")

    monkeypatch.setattr("training.finetune.fit_calibration", refuse)
    finetune(replace(options, tune=TUNE), catalogue, ignore)
    found = load_checkpoint(options.out)
    assert found.calibration is None
    assert found.training["calibration"] == "too few"


def test_scores_of_other_weights_are_not_kept(better):
    assert "elsewhere" not in load_checkpoint(better.out).evaluation


def test_without_a_gain_the_first_weights_are_written_and_the_card_says_so(options, catalogue):
    finetune(options, catalogue, ignore)
    base, found = load_checkpoint(options.base), load_checkpoint(options.out)
    assert same(found.weights, base.weights)
    assert found.training["weights"].startswith("those of the base: tuning gained +0.0%")
    assert found.training["tuned_share"] == 0
    assert found.evaluation["elsewhere"] == {"wql": 0.3}


def test_zeros_on_the_held_back_days_are_said_in_words(options, catalogue):
    lines = options.data[0].read_text(encoding="utf-8").splitlines()
    silent = [f"{line.rsplit(',', 1)[0]},0" for line in lines[1:]]
    options.data[0].write_text("\n".join([lines[0], *silent]) + "\n", encoding="utf-8")
    said = finetune(options, catalogue, ignore).checkpoint.training["weights"]
    assert said.startswith("those of the base: the held-back period does not tell")
    assert "nan" not in said


def test_a_chain_of_tunings_stays_in_the_card(better, catalogue):
    out = better.out.with_name("again.safetensors")
    again = replace(better, base=better.out, out=out, tune=STILL)
    finetune(again, catalogue, ignore)
    story = load_checkpoint(again.out).training
    assert story["base"]["name"] == "mine"
    assert story["base"]["training"]["base"]["name"] == "base"


def test_the_tuned_checkpoint_forecasts(better, catalogue, make_window):
    checkpoint = load_checkpoint(better.out)
    (forecast,) = TransformerPredictor(checkpoint, catalogue).predict([make_window()], 24, (0.5,))
    assert forecast.values.shape == (1, 24, 1)


def test_a_checkpoint_may_be_tuned_in_place(options, catalogue):
    digest = file_digest(options.base)
    finetune(replace(options, out=options.base), catalogue, ignore)
    assert load_checkpoint(options.base).training["base"]["digest"] == digest


def test_a_stopped_run_leaves_no_checkpoint_and_goes_on(options, catalogue):
    with pytest.raises(KeyboardInterrupt):
        finetune(options, catalogue, ignore, on_progress=stop)
    assert options.state_path.exists()
    assert not options.out.exists()
    steps = []
    finetune(options, catalogue, ignore, on_progress=lambda progress: steps.append(progress.step))
    assert steps == [2]
    assert sorted(path.name for path in options.out.parent.iterdir()) == [
        "base.safetensors",
        "cells.csv",
        "mine.safetensors",
    ]


def test_a_stopped_run_is_not_gone_on_with_by_other_options(options, catalogue):
    with pytest.raises(KeyboardInterrupt):
        finetune(options, catalogue, ignore, on_progress=stop)
    with pytest.raises(ResumeError, match="other settings"):
        finetune(replace(options, tune=replace(STILL, seed=3)), catalogue, ignore)


@pytest.mark.parametrize("error", [DivergedError("nan"), OSError(errno.ENOSPC, "disk full")])
def test_a_run_that_fails_leaves_the_checkpoint_that_was_there(
    error, options, catalogue, monkeypatch
):
    finetune(options, catalogue, ignore)
    digest = file_digest(options.out)

    def fail(*_, **__):
        raise error

    where = "tuning.fit" if isinstance(error, DivergedError) else "finetune.store_checkpoint"
    monkeypatch.setattr(f"training.{where}", fail)
    with pytest.raises(type(error)):
        finetune(replace(options, tune=replace(STILL, seed=1)), catalogue, ignore)
    assert file_digest(options.out) == digest


def test_a_full_disk_at_the_end_keeps_the_run(options, catalogue, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "disk full")

    with monkeypatch.context() as patched:
        patched.setattr("training.finetune.store_checkpoint", full)
        with pytest.raises(OSError, match="disk full"):
            finetune(options, catalogue, ignore)
    steps = []
    finetune(options, catalogue, ignore, on_progress=lambda p: steps.append(p.step))
    assert steps == []
    assert load_checkpoint(options.out).training["steps"] == 2


def test_an_unreadable_file_is_named_and_the_rest_is_used(options, catalogue):
    folder = options.data[0].parent / "data"
    folder.mkdir()
    options.data[0].rename(folder / "cells.csv")
    (folder / "broken.xml").write_text("<measCollecFile", encoding="utf-8")
    errors: list[UnreadableFileError] = []
    finetune(replace(options, data=(folder,)), catalogue, errors.append)
    assert len(errors) == 1
    assert load_checkpoint(options.out).training["cells"] == 2


def test_data_too_short_are_refused(options, catalogue, write_table, tmp_path):
    table = write_table(tmp_path / "short.csv", steps=20)
    with pytest.raises(DataError, match="samples in a row"):
        finetune(replace(options, data=(table,)), catalogue, ignore)
    assert not options.out.exists()


def test_what_is_no_checkpoint_is_refused(options, catalogue):
    with pytest.raises(CheckpointError):
        finetune(replace(options, base=options.data[0]), catalogue, ignore)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": ()}, "data to tune to"),
        ({"minutes": 0.0}, "minutes"),
        ({"minutes": 5.0}, "both"),
        ({"threads": 0}, "threads"),
        ({"out": Path()}, "directory"),
    ],
)
def test_impossible_options_are_refused(options, change, message):
    with pytest.raises(DataError, match=message):
        replace(options, **change)


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO(), record=True, width=100, force_terminal=True)


def test_the_terminal_shows_scores_and_which_weights_were_taken(options, catalogue, console):
    options = replace(options, tune=TUNE)
    assert finetune_with_progress(options, catalogue, Session(console)) == 0
    text = console.export_text()
    assert "calibrating" in text
    assert "RRU.PrbTotDl" in text
    assert "weights: tuned: +" in text
    assert "checkpoint written to" in text


def test_the_bar_shows_losses_and_the_time_left(options, catalogue, console, monkeypatch):
    def interrupted(_options, _catalogue, _on_error, on_stage, on_progress, _team):
        on_stage("zero-shot", 3, 8)
        on_progress(Progress(40, 100, 0.51234, 0.39876, 2.5, 65.0))
        raise KeyboardInterrupt

    monkeypatch.setattr("training.finetune_cli.finetune", interrupted)
    with pytest.raises(KeyboardInterrupt):
        finetune_with_progress(options, catalogue, Session(console))
    text = console.export_text()
    assert "40/100" in text
    assert "loss 0.5123 held back 0.3988, 0:01:05 left" in text
    assert "goes on from" not in text


def test_a_stopped_run_says_how_to_go_on(options, catalogue, console, monkeypatch):
    def interrupted(*_):
        options.state_path.touch()
        raise KeyboardInterrupt

    monkeypatch.setattr("training.finetune_cli.finetune", interrupted)
    with pytest.raises(KeyboardInterrupt):
        finetune_with_progress(options, catalogue, Session(console))
    assert "the same command goes on from" in console.export_text()


def test_the_command_hands_its_options_on(options, monkeypatch):
    seen = []

    def take(given, _catalogue, _console):
        seen.append(given)
        return 1

    monkeypatch.setattr("training.finetune_cli.finetune_with_progress", take)
    arguments = ["finetune", str(options.base), str(options.data[0]), "--out", str(options.out)]
    extra = ["--minutes", "3", "--learning-rate", "0.001", "--seed", "7", "--kpi", "RRU.PrbTotDl"]
    answer = CliRunner().invoke(rancast.app, [*arguments, *extra])
    assert answer.exit_code == 1
    (given,) = seen
    assert (given.base, given.data, given.out) == (options.base, options.data, options.out)
    assert (given.minutes, given.tune.learning_rate, given.tune.seed) == (3.0, 0.001, 7)
    assert given.selection.kpis == ("RRU.PrbTotDl",)
