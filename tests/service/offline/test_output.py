"""Every output format holds the same forecasts."""

from __future__ import annotations

import csv
import json

import numpy as np
import pyarrow.parquet
import pytest

from kpi.catalogue import load_catalogue
from kpi.window import KpiWindow
from model.baseline import SeasonalBaseline
from service.offline.forecast import ForecastResult
from service.offline.output import MAX_CHARTS, OutputError, check_output, write_output

HOUR_MS = 3_600_000
START_MS = 1_767_571_200_000


def make_result(cells: int = 2) -> ForecastResult:
    rng = np.random.default_rng(0)
    windows = [
        KpiWindow(
            f"Site={index},NRCellDU=1",
            ("RRU.PrbTotDl", "Mystery"),
            START_MS,
            HOUR_MS,
            np.vstack([rng.uniform(0, 100, 72), np.full(72, np.nan)]).astype(np.float32),
        )
        for index in range(cells)
    ]
    forecasts = SeasonalBaseline(load_catalogue()).predict(windows, 3, (0.1, 0.5, 0.9))
    return ForecastResult(windows, forecasts, (), {"RRU.PrbTotDl": "%"})


@pytest.fixture
def result() -> ForecastResult:
    return make_result()


def test_csv_has_a_row_a_cell_kpi_and_step(result, tmp_path):
    path = tmp_path / "out.csv"
    write_output(result, path)
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * 3
    assert rows[0]["cell"] == "Site=0,NRCellDU=1"
    assert rows[0]["kpi"] == "RRU.PrbTotDl"
    assert rows[0]["time"].startswith("2026-01-08 00:00:00")
    assert rows[1]["time"].startswith("2026-01-08 01:00:00")
    assert float(rows[0]["q0.5"]) == pytest.approx(result.forecasts[0].values[0, 0, 1], rel=1e-5)
    assert rows[3]["kpi"] == "Mystery"
    assert rows[3]["q0.5"] == ""
    assert rows[0]["rung"] == "baseline"
    assert rows[0]["model"] == "seasonal baseline"


def test_parquet_keeps_types_and_values(result, tmp_path):
    path = tmp_path / "deep" / "out.parquet"
    write_output(result, path)
    table = pyarrow.parquet.read_table(path)
    assert str(table.schema.field("time").type) == "timestamp[ms, tz=UTC]"
    median = table.column("q0.5").to_pylist()
    assert median[0] == result.forecasts[0].values[0, 0, 1]
    assert median[3] is None


def test_json_is_the_answer_of_the_service(result, tmp_path):
    path = tmp_path / "out.json"
    write_output(result, path)
    answer = json.loads(path.read_text(encoding="utf-8"))
    assert len(answer["forecasts"]) == 2
    first = answer["forecasts"][0]
    assert set(first["kpis"]["RRU.PrbTotDl"]) == {"0.1", "0.5", "0.9"}
    assert first["kpis"]["Mystery"]["0.5"] == [None] * 3
    assert first["start"] == "2026-01-08T00:00:00Z"


def test_html_draws_every_kpi_and_needs_nothing_from_outside(result, tmp_path):
    path = tmp_path / "out.html"
    write_output(result, path)
    page = path.read_text(encoding="utf-8")
    assert page.count('class="plotly-graph-div"') == 4
    assert "Forecast of 2 cells" in page
    assert 'src="http' not in page
    assert '"title":{"text":"%"}' in page
    assert "seasonal baseline 1</p>" in page


def test_html_of_many_cells_says_that_it_shows_a_part(tmp_path):
    path = tmp_path / "out.html"
    write_output(make_result(cells=40), path)
    page = path.read_text(encoding="utf-8")
    assert page.count('class="plotly-graph-div"') == MAX_CHARTS
    assert f"the first {MAX_CHARTS} of 80 charts" in page


def test_an_unknown_suffix_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(OutputError, match=r"\.csv, \.json, \.parquet, \.html"):
        check_output(tmp_path / "out.xlsx")


def test_a_place_that_cannot_be_written_is_named(result, tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(OutputError, match="cannot be written"):
        write_output(result, tmp_path / "file" / "out.csv")
