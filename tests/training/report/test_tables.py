"""Tables are tidy, and their lines add up."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from model.baseline import SeasonalBaseline
from training.backtest import Backtest, BacktestConfig, BacktestResult, backtest
from training.report import ScoresTable, write_hours, write_worst

CONFIG = BacktestConfig(horizon=12)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def tables(make_window, catalogue, tmp_path) -> tuple[Path, BacktestResult]:
    folder = tmp_path / "new" / "tables"
    windows = [make_window(seed) for seed in range(3)]
    windows[2] = replace(windows[2], cell='a "name", with comma', values=windows[2].values * 0)
    predictors = [SeasonalBaseline(catalogue), SeasonalBaseline(catalogue, ("last value",))]
    with ScoresTable(folder / "scores.csv") as scores:
        result = backtest(predictors, windows, CONFIG, Backtest(on_cell=scores.add))
    write_hours(result, folder / "hours.csv")
    write_worst(result, folder / "worst.csv")
    return folder, result


def test_there_is_one_line_a_model_kpi_cell_and_leads(tables):
    lines = read(tables[0] / "scores.csv")
    keys = {(x["model"], x["kpi"], x["cell"], x["first_lead"]) for x in lines}
    assert len(keys) == len(lines) == 2 * 1 * 3 * len({x["first_lead"] for x in lines})
    assert {x["cell"] for x in lines} == {"cell=0", "cell=1", 'a "name", with comma'}
    assert {x["step_seconds"] for x in lines} == {"3600"}


def test_lines_add_up_to_the_overall_scores(tables):
    folder, result = tables
    for whole in result.overall():
        lines = [x for x in read(folder / "scores.csv") if x["model"] == whole.model]
        sums = {
            name: sum(float(x[name]) for x in lines)
            for name in (
                *("values", "absolute_target", "pinball", "absolute_error", "inside"),
                *("scaled_error", "scaled_values"),
            )
        }
        assert sums["values"] == whole.accuracy.targets
        assert sums["pinball"] / sums["absolute_target"] == pytest.approx(whole.accuracy.wql)
        assert sums["absolute_error"] / sums["absolute_target"] == pytest.approx(
            whole.accuracy.wape
        )
        assert sums["scaled_error"] / sums["scaled_values"] == pytest.approx(whole.accuracy.mase)
        assert sums["inside"] / sums["values"] == pytest.approx(whole.accuracy.coverage)


def test_what_is_no_number_is_left_blank(tables):
    lines = [x for x in read(tables[0] / "scores.csv") if x["cell"].startswith("a ")]
    assert {x["wql"] for x in lines} == {""}
    assert {x["coverage"] for x in lines} == {"1.0"}


def test_hours_are_all_there(tables):
    lines = read(tables[0] / "hours.csv")
    assert len(lines) == 2 * 24
    assert [int(x["hour"]) for x in lines[:24]] == list(range(24))
    total = sum(int(x["values"]) for x in lines[:24])
    assert total == tables[1].overall()[0].accuracy.targets


def test_worst_cells_are_in_order(tables):
    lines = read(tables[0] / "worst.csv")
    ratios = [float(x["error_ratio"]) for x in lines]
    assert ratios == sorted(ratios, reverse=True)
    assert np.isclose(sum(ratios), 1)


def test_a_run_that_fails_leaves_no_table(tmp_path):
    path = tmp_path / "scores.csv"
    with pytest.raises(RuntimeError), ScoresTable(path):
        raise RuntimeError("stopped")
    assert list(tmp_path.iterdir()) == []


def test_a_table_is_written_inside_with_only(tmp_path):
    with pytest.raises(ValueError, match="with"):
        ScoresTable(tmp_path / "scores.csv").add([])
