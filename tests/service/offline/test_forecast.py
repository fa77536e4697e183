"""The offline job: what it refuses at once, and what it hands over."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpi.catalogue import load_catalogue
from kpi.errors import UnreadableFileError
from kpi.history import Selection
from model.baseline import SeasonalBaseline
from model.errors import HorizonError, LevelError, ModelError
from service.offline.forecast import ForecastJob, run_forecast


@pytest.fixture
def table(tmp_path) -> Path:
    lines = ["timestamp,cell_id,RRU.PrbTotDl,Mystery"]
    lines += [f"2026-01-05T{hour:02d}:00:00Z,Cell/1,{hour},{2 * hour}" for hour in range(24)]
    path: Path = tmp_path / "cells.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def run(job: ForecastJob):
    catalogue = load_catalogue()
    return run_forecast(job, SeasonalBaseline(catalogue), catalogue)


@pytest.mark.parametrize(
    ("job", "error"),
    [
        (ForecastJob((Path("nowhere"),), horizon=0), HorizonError),
        (ForecastJob((Path("nowhere"),), levels=(0.9, 0.1)), LevelError),
        (ForecastJob((Path("nowhere"),), Selection(country="XX")), ModelError),
        (ForecastJob((Path("nowhere"),)), UnreadableFileError),
    ],
)
def test_what_cannot_be_answered_is_refused_before_anything_is_read(job, error):
    with pytest.raises(error):
        run(job)


def test_forecasts_follow_their_windows_and_units_their_kpis(table):
    result = run(ForecastJob((table,), horizon=3))
    (window,), (forecast,) = result.windows, result.forecasts
    assert forecast.start_ms == window.end_ms
    assert forecast.values.shape == (2, 3, 3)
    assert result.units == {"RRU.PrbTotDl": "%", "Mystery": ""}
    assert result.unreadable == []


def test_windows_bear_the_country_that_was_selected(table):
    result = run(ForecastJob((table,), Selection(country="ES-CT"), horizon=3))
    assert [window.country for window in result.windows] == ["ES-CT"]
