"""The backtest's terminal side, and what it does with data that are no good."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

from kpi.errors import NothingSelectedError
from kpi.history import Selection
from model.calibration import Calibration
from model.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from model.forecaster import Forecaster
from training.backtest import BacktestConfig
from training.backtest_cli import BacktestOptions, backtest_with_progress, forecasters_of
from training.errors import DataError
from training.opponents import UnknownOpponentError

HOUR = np.timedelta64(1, "h")
START = np.datetime64("2026-01-05T00:00")


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO(), record=True, width=100)


@pytest.fixture(scope="module")
def checkpoint(tiny_config, tmp_path_factory) -> Path:
    torch.manual_seed(0)
    path: Path = tmp_path_factory.mktemp("checkpoint") / "tiny.safetensors"
    weights = Forecaster(tiny_config).state_dict()
    save_checkpoint(Checkpoint("tiny", "1", tiny_config, weights, "1"), path)
    return path


@pytest.fixture
def options(checkpoint, tmp_path):
    """Options of a backtest of lines of a table."""

    def make(lines: list[str], head: str = "timestamp,cell_id,RRU.PrbTotDl") -> BacktestOptions:
        path = tmp_path / "data.csv"
        path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
        return BacktestOptions(
            checkpoint=checkpoint,
            data=(path,),
            selection=Selection(),
            config=BacktestConfig(horizon=6),
            opponents=("last-value",),
        )

    return make


def lines(cell: str, steps: int = 200, step: np.timedelta64 = HOUR) -> list[str]:
    values = 50 + 30 * np.sin(np.arange(steps) / 4)
    return [f"{START + i * step}Z,{cell},{value:.2f}" for i, value in enumerate(values)]


def test_scores_words_and_files_are_given(options, catalogue, console, tmp_path):
    given = replace(
        options(lines("a") + lines("b")),
        report=tmp_path / "new" / "report.html",
        table=tmp_path / "tables",
    )
    assert backtest_with_progress(given, catalogue, console) == 0
    text = console.export_text()
    assert "RRU.PrbTotDl" in text
    assert "tiny" in text
    assert "2 cells, 20 origins" in text
    assert "up to 6 hours ahead" in text.replace("\n", " ")
    assert (tmp_path / "new" / "report.html").stat().st_size > 10_000
    written = sorted(path.name for path in (tmp_path / "tables").iterdir())
    assert written == ["hours.csv", "scores.csv", "worst.csv"]


def test_a_table_with_a_suffix_is_one_file(options, catalogue, console, tmp_path):
    given = replace(options(lines("a")), table=tmp_path / "mine.csv")
    backtest_with_progress(given, catalogue, console)
    assert (tmp_path / "mine.csv").read_text(encoding="utf-8").startswith("model,kpi,cell,")


def test_a_calibrated_checkpoint_is_tested_with_and_without(tiny_config, catalogue, make_window):
    weights = Forecaster(tiny_config).state_dict()
    checkpoint = Checkpoint("tiny", "1", tiny_config, weights, "1")
    levels = tiny_config.levels
    wider = tuple((level - 0.5) / 2 for level in levels)
    calibrated = replace(checkpoint, calibration=Calibration(levels, (1,), {}, (wider,)))
    served, plain = forecasters_of(calibrated, catalogue)
    assert served.identity.name == "tiny"
    assert plain.identity.name == "tiny (uncalibrated)"
    found, unshifted, trained = (
        forecaster.predict([make_window()], 6, (0.1, 0.9))[0].values[..., 1]
        for forecaster in (served, plain, *forecasters_of(checkpoint, catalogue))
    )
    assert (found > unshifted).any()
    np.testing.assert_array_equal(unshifted, trained)


def test_a_horizon_beyond_one_pass_is_tested_as_it_serves(options, tiny_config, catalogue, console):
    longer = tiny_config.max_horizon + 1
    given = replace(options(lines("a")), config=BacktestConfig(horizon=longer, stride=24))
    assert backtest_with_progress(given, catalogue, console) == 0
    assert f"1 to {longer}" in console.export_text()


def test_a_folder_in_place_of_a_file_is_refused_before_any_work(options, tmp_path):
    with pytest.raises(DataError, match=r"write the report to, .* is a directory"):
        replace(options([]), report=tmp_path)
    (tmp_path / "old.csv").mkdir()
    with pytest.raises(DataError, match=r"write the scores to, .*old\.csv is a directory"):
        replace(options([]), table=tmp_path / "old.csv")
    (tmp_path / "old.txt").touch()
    with pytest.raises(DataError, match=r"\.csv or a folder .*old\.txt is neither"):
        replace(options([]), table=tmp_path / "old.txt")


def test_a_checkpoint_that_learnt_from_the_tested_days_is_told(
    options, checkpoint, catalogue, console, tmp_path
):
    seen = replace(
        load_checkpoint(checkpoint), training={"data_until": "2026-01-12T16:00:00+00:00"}
    )
    save_checkpoint(seen, tmp_path / "seen.safetensors")
    given = options(lines("a"))
    backtest_with_progress(given, catalogue, console)
    assert "learnt from recordings" not in console.export_text()
    given = replace(given, checkpoint=tmp_path / "seen.safetensors", report=tmp_path / "it.html")
    backtest_with_progress(given, catalogue, console)
    told = "learnt from recordings up to 2026-01-12 16:00 UTC, after 80% of these origins"
    assert told in " ".join(console.export_text().split())
    assert told in (tmp_path / "it.html").read_text(encoding="utf-8")


def test_an_unknown_opponent_is_refused_before_data_are_read(options, catalogue, console):
    given = replace(options([]), opponents=("prophet",), data=(Path("nowhere"),))
    with pytest.raises(UnknownOpponentError, match="prophet"):
        backtest_with_progress(given, catalogue, console)


def test_one_sample_is_refused_with_what_is_needed(options, catalogue, console):
    given = replace(options(lines("a", 1)), selection=Selection(step_seconds=3600))
    with pytest.raises((DataError, NothingSelectedError), match="expected"):
        backtest_with_progress(given, catalogue, console)


def test_less_than_one_origin_needs_is_refused_with_what_there_is(options, catalogue, console):
    with pytest.raises(DataError, match=r"at least 38 samples.*longest has 20"):
        backtest_with_progress(options(lines("a", 20)), catalogue, console)


def test_a_short_cell_beside_a_long_one_is_named(options, catalogue, console):
    backtest_with_progress(options(lines("long") + lines("short", 20)), catalogue, console)
    assert "not tested: short: 20 samples of 3600 s; 38 needed" in console.export_text()


def test_less_than_two_days_is_tested_by_shorter_rules(options, catalogue, console):
    given = replace(options(lines("a", 40)), opponents=("daily-naive", "weekly-mean"))
    assert backtest_with_progress(given, catalogue, console) == 0


def test_mixed_sampling_is_tested_and_told(options, catalogue, console):
    quarter = np.timedelta64(15, "m")
    backtest_with_progress(options(lines("a") + lines("b", 200, quarter)), catalogue, console)
    assert "steps of 900, 3600 s are mixed" in console.export_text()


def test_nine_tenths_missing_are_no_obstacle(options, catalogue, console):
    table = lines("a", 400)
    kept = np.random.default_rng(0).random(len(table)) < 0.1
    sparse = [
        line if keep else f"{line.rpartition(',')[0]},"
        for line, keep in zip(table, kept, strict=True)
    ]
    assert backtest_with_progress(options(sparse), catalogue, console) == 0
    assert "RRU.PrbTotDl" in console.export_text()


def test_a_kpi_of_words_is_no_kpi(options, catalogue, console):
    table = [f"{line},busy" for line in lines("a")]
    given = options(table, "timestamp,cell_id,RRU.PrbTotDl,Mood")
    assert backtest_with_progress(given, catalogue, console) == 0
    assert "Mood" not in console.export_text()


def test_nothing_but_words_is_refused(options, catalogue, console):
    table = [f"{line.rpartition(',')[0]},busy" for line in lines("a")]
    with pytest.raises(Exception, match="expected"):
        backtest_with_progress(options(table, "timestamp,cell_id,Mood"), catalogue, console)


def test_a_clock_that_jumps_costs_no_cell_its_history(options, catalogue, console):
    jump = [f"{START + np.timedelta64(365 * 20, 'D')}Z,a,50.0", f"{np.datetime64(0, 's')}Z,a,50.0"]
    assert backtest_with_progress(options(lines("a") + jump), catalogue, console) == 0
    assert "1 cell, 10 origins" in console.export_text()
