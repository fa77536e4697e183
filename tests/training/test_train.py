"""`rancast train` end to end on a small table: a checkpoint that tells its story."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kpi.errors import UnreadableFileError
from kpi.history import Selection
from model.checkpoint import load_checkpoint
from model.errors import ModelError
from model.transformer import TransformerPredictor
from training.errors import DataError, ResumeError
from training.fit_config import FitConfig
from training.train import TrainOptions, train

FIT = FitConfig(steps=4, batches_per_step=1, warmup_steps=1, evaluate_every=2, validation_batches=1)


def ignore(_) -> None:
    pass


@pytest.fixture
def options(tmp_path, write_table):
    table = write_table(tmp_path / "cells.csv")
    return TrainOptions(
        out=tmp_path / "mine.safetensors", data=(table,), preset="nano", series=4, fit=FIT
    )


def test_the_checkpoint_says_what_it_was_made_of(options, catalogue):
    train(options, catalogue, ignore, ignore)
    found = load_checkpoint(options.out)
    assert found.name == "mine"
    assert found.training["data"] == ["cells.csv"]
    assert found.training["data_digest"].startswith("sha256:")
    assert found.training["cells"] == 2
    assert found.training["kpis"] == ["RRU.PrbTotDl"]
    assert found.training["fit"]["seed"] == 0
    assert found.training["time_zone"] == "UTC"
    assert found.training["country"] is None
    assert found.training["step_seconds"] == [3600.0]
    assert found.training["steps"] == 4
    assert len(found.training["validation_losses"]) == 2
    assert found.catalogue_version == catalogue.version


def test_the_trained_checkpoint_forecasts(options, catalogue, make_window):
    predictor = TransformerPredictor(train(options, catalogue, ignore, ignore), catalogue)
    (forecast,) = predictor.predict([make_window()], 24, (0.1, 0.5, 0.9))
    assert forecast.values.shape == (1, 24, 3)


def test_no_state_is_left_after_the_end(options, catalogue):
    train(options, catalogue, ignore, ignore)
    assert not options.state_path.exists()


def test_a_run_that_was_stopped_goes_on_with_the_same_command(options, catalogue):
    def stop(progress):
        if progress.step == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(options, catalogue, ignore, stop)
    assert options.state_path.exists()
    assert not options.out.exists()
    steps = []
    train(options, catalogue, ignore, lambda progress: steps.append(progress.step))
    assert steps == [3, 4]


@pytest.mark.parametrize("change", [{"series": 8}, {"synthetic_ratio": 0.2}])
def test_a_stopped_run_is_not_gone_on_with_by_other_options(options, catalogue, change):
    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(options, catalogue, ignore, stop)
    with pytest.raises(ResumeError, match="other settings"):
        train(replace(options, **change), catalogue, ignore, ignore)


def test_without_data_synthetic_cells_teach(options, catalogue):
    train(replace(options, data=()), catalogue, ignore, ignore)
    story = load_checkpoint(options.out).training
    assert story["data"] == ["synthetic cells"]
    assert story["synthetic"]["series"] == 4


def test_an_unreadable_file_is_named_and_the_rest_is_used(options, catalogue):
    folder = options.data[0].parent
    (folder / "broken.xml").write_text("<measCollecFile", encoding="utf-8")
    errors: list[UnreadableFileError] = []
    train(replace(options, data=(folder,)), catalogue, errors.append, ignore)
    assert len(errors) == 1
    assert load_checkpoint(options.out).training["cells"] == 2


def test_the_country_is_in_the_card_and_an_unknown_one_is_refused_before_reading(
    options, catalogue
):
    spanish = replace(options, selection=Selection(country="ES"))
    train(spanish, catalogue, ignore, ignore)
    assert load_checkpoint(options.out).training["country"] == "ES"
    nowhere = replace(options, data=(Path("nowhere"),), selection=Selection(country="XX"))
    with pytest.raises(ModelError, match="expected a country"):
        train(nowhere, catalogue, ignore, ignore)


def test_data_too_short_are_refused(options, catalogue, write_table, tmp_path):
    table = write_table(tmp_path / "short.csv", steps=20)
    with pytest.raises(DataError, match="samples in a row"):
        train(replace(options, data=(table,)), catalogue, ignore, ignore)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"preset": "huge"}, "nano"),
        ({"synthetic_ratio": 1.5}, "0 to 1"),
        ({"validation_ratio": 0.0}, "between 0 and 1"),
        ({"validation_ratio": 1.0}, "between 0 and 1"),
        ({"threads": 0}, "threads"),
        ({"series": 0}, "series"),
        ({"out": Path()}, "directory"),
        ({"data": (), "synthetic_ratio": 0}, "neither"),
    ],
)
def test_impossible_options_are_refused(options, change, message):
    with pytest.raises(DataError, match=message):
        replace(options, **change)
