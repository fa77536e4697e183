import json

import numpy as np
import pyarrow as pa
import pytest

from kpi.window import KpiWindow
from service.answers import forecast_answer
from service.codecs.arrow_answers import forecast_stream
from tests.service.fakes import IDENTITY, NOON_MS, RepeatLast

LEVELS = (0.1, 0.5, 0.9)


def forecasts_of(*windows: tuple[str, list[list[float]]], horizon: int = 2):
    made = [
        KpiWindow(cell, tuple("AB"[: len(values)]), NOON_MS, 2000, np.array(values, np.float32))
        for cell, values in windows
    ]
    return RepeatLast().predict(made, horizon, LEVELS)


def answer_of(forecasts):
    names = [forecast.kpis for forecast in forecasts]
    stream = forecast_stream(IDENTITY, forecasts, names, now_ms=NOON_MS + 45_000)
    text = forecast_answer(IDENTITY, forecasts, names, now_ms=NOON_MS + 45_000)
    table = pa.ipc.open_stream(stream).read_all()
    table.validate(full=True)
    return table, json.loads(text)


def test_a_row_a_cell_and_kpi_says_what_the_json_says():
    table, listed = answer_of(
        forecasts_of(("a", [[1, 2], [3, np.nan]]), ("b", [[5]]), ("c", [[np.nan], [7]]))
    )
    rows = table.to_pylist()
    expected = [
        (one["cell"], kpi, one, quantiles)
        for one in listed["forecasts"]
        for kpi, quantiles in one["kpis"].items()
    ]
    assert [(row["cell"], row["kpi"]) for row in rows] == [each[:2] for each in expected]
    for row, (_, _, one, quantiles) in zip(rows, expected, strict=True):
        for key, values in quantiles.items():
            found = np.array(row[f"q{key}"], np.float32)
            np.testing.assert_array_equal(found, np.array(values, np.float32))
        assert row["start"].isoformat().replace("+00:00", "Z") == one["start"]
        assert row["step_seconds"] == one["step_seconds"]
        assert row["rung"] == one["rung"]
        assert row["context_end"].isoformat().replace("+00:00", "Z") == one["context"]["end"]
        assert row["missing_ratio"] == pytest.approx(one["context"]["missing_ratio"], abs=1e-6)
        assert row["age_seconds"] == one["context"]["age_seconds"]
    assert json.loads(table.schema.metadata[b"rancast"]) == {"model": listed["model"]}


def test_columns_stand_in_the_order_that_the_page_states():
    table, _ = answer_of(forecasts_of(("a", [[1]])))
    assert table.column_names == [
        *("cell", "kpi", "start", "step_seconds", "q0.1", "q0.5", "q0.9", "rung"),
        *("context_start", "context_end", "missing_ratio", "age_seconds"),
    ]
    assert table.schema.field("q0.5").type == pa.list_(pa.float32(), 2)


def test_an_age_that_is_not_known_is_null_and_a_quantile_nan():
    table, _ = answer_of(forecasts_of(("a", [[np.nan]])))
    assert table.column("age_seconds").null_count == 1
    assert np.isnan(table.column("q0.5").to_pylist()[0]).all()
