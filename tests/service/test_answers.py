import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kpi.window import KpiWindow
from model.predictor import Forecast
from service.answers import forecast_answer, level_key, samples_answer, seconds, to_numbers
from service.schemas import ForecastResponse, SamplesResponse
from tests.service.fakes import IDENTITY, NOON_MS, RepeatLast

KPIS = tuple(f"K{i}" for i in range(40))


def forecast_of(values, levels=(0.1, 0.9), kpis=("A", "B"), horizon=3) -> Forecast:
    window = KpiWindow("c", kpis, NOON_MS, 1500, np.array(values, dtype=np.float32))
    return RepeatLast().predict([window], horizon, levels)[0]


def answer_of(forecast, names=("A", "B"), now_ms=NOON_MS):
    return json.loads(forecast_answer(IDENTITY, [forecast], [names], now_ms=now_ms))


def test_an_answer_has_the_shape_that_the_schema_says():
    answer = answer_of(forecast_of([[1, 2], [3, np.nan]]))
    assert ForecastResponse.model_validate(answer, strict=True).forecasts[0].cell == "c"


def test_quantiles_are_keyed_by_level_and_run_over_the_horizon():
    forecast = answer_of(forecast_of([[1, 2], [3, 4]]))["forecasts"][0]
    assert forecast["kpis"]["B"] == {"0.1": [4.1, 4.1, 4.1], "0.9": [4.9, 4.9, 4.9]}


def test_provenance_says_where_the_forecast_comes_from():
    forecast = forecast_of([[1, 2], [3, np.nan]])
    answered = answer_of(forecast, now_ms=NOON_MS + 45_000)["forecasts"][0]
    assert answered["rung"] == "full"
    assert answered["start"] == "2026-11-01T12:00:03Z"
    assert answered["step_seconds"] == 1.5
    assert answered["context"] == {
        "start": "2026-11-01T12:00:00Z",
        "end": "2026-11-01T12:00:03Z",
        "missing_ratio": 0.25,
        "age_seconds": 42.0,
    }


def test_what_cannot_be_said_is_null_and_not_a_number():
    answered = answer_of(forecast_of([[np.nan], [np.nan]]))["forecasts"][0]
    assert answered["kpis"]["A"]["0.1"] == [None, None, None]
    assert answered["context"]["age_seconds"] is None
    assert answered["context"]["missing_ratio"] == 1.0


def test_names_are_those_of_the_client():
    answered = answer_of(forecast_of([[1], [2]]), names=("pmA", "pmB"))["forecasts"][0]
    assert list(answered["kpis"]) == ["pmA", "pmB"]


@pytest.mark.parametrize(
    ("level", "key"), [(0.1, "0.1"), (0.5, "0.5"), (0.975, "0.975"), (1e-5, "0.00001")]
)
def test_a_level_is_keyed_by_its_shortest_decimal(level, key):
    assert level_key(level) == key


@given(st.floats(0.0001, 0.9999))
def test_a_levels_key_means_the_level(level):
    assert float(level_key(level)) == level


@given(hnp.arrays(np.float32, hnp.array_shapes(min_dims=1, max_dims=3, max_side=4)))
def test_numbers_are_those_of_the_array_to_seven_digits_and_null_where_not_finite(values):
    numbers = np.array(to_numbers(values), dtype=np.float64)
    finite = np.isfinite(values)
    np.testing.assert_allclose(numbers[finite], values[finite].astype(np.float64), rtol=1e-6)
    assert np.isnan(numbers[~finite]).all()


@given(hnp.arrays(np.float32, 20, elements=st.floats(-1e6, 1e6, width=32)))
def test_shortening_keeps_values_in_order(values):
    ordered = np.sort(values)
    assert (np.diff(to_numbers(ordered)) >= 0).all()


def test_a_float32_is_written_without_its_rounding_error():
    assert to_numbers(np.array([12.1, 0.3], dtype=np.float32)) == [12.1, 0.3]


def test_whole_seconds_have_no_fraction():
    assert json.dumps([seconds(900_000), seconds(1_500)]) == "[900, 1.5]"


def test_no_piece_of_an_answer_is_written_in_one_go_that_is_larger_than_a_kpis(monkeypatch):
    forecasts = [forecast_of(np.ones((40, 2)), (0.1, 0.5, 0.9), names, 48) for names in [KPIS] * 5]
    one = forecast_of(np.ones((1, 2)), (0.1, 0.5, 0.9), KPIS[:1], 48)
    most = len(forecast_answer(IDENTITY, [one], [KPIS[:1]], now_ms=NOON_MS))
    texts: list[int] = []
    dumps = json.dumps

    def spy(value: Any, **options: Any) -> str:
        text = dumps(value, **options)
        texts.append(len(text))
        return text

    monkeypatch.setattr("service.answers.json.dumps", spy)
    answer = forecast_answer(IDENTITY, forecasts, [KPIS] * 5, now_ms=NOON_MS)
    assert max(texts) <= most < len(answer) / 50
    assert len(json.loads(answer)["forecasts"][4]["kpis"]) == 40


def test_samples_have_the_shape_that_the_schema_says():
    values = np.array([[1, np.nan], [2.5, 3]], dtype=np.float32)
    answer = json.loads(samples_answer("c", NOON_MS, 1500, ["A", "B"], values))
    assert SamplesResponse.model_validate(answer, strict=True)
    assert answer == {
        "cell": "c",
        "start": "2026-11-01T12:00:00Z",
        "step_seconds": 1.5,
        "kpis": {"A": [1.0, None], "B": [2.5, 3.0]},
    }
