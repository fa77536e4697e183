import json
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kpi.window import KpiWindow
from model.predictor import Forecast
from service.answers import forecast_answer, level_key, samples_answer, seconds
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


@given(
    hnp.arrays(np.float32, (2, 5), elements=st.floats(width=32, allow_nan=True)),
    st.sampled_from([1, 1_000_000]),
)
def test_numbers_are_those_of_the_forecast_exactly_and_stay_in_order(values, piece_numbers):
    ordered = np.sort(values, axis=1)[:, None, :]  # (K, H, Q)
    levels = (0.1, 0.3, 0.5, 0.7, 0.9)
    forecast = replace(forecast_of([[1], [1]]), values=ordered, levels=levels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("service.answers._PIECE_NUMBERS", piece_numbers)
        answered = answer_of(forecast)["forecasts"][0]["kpis"]
    for row, by_level in zip(ordered[:, 0], answered.values(), strict=True):
        numbers = [quantiles[0] for quantiles in by_level.values()]
        assert [number is None for number in numbers] == (~np.isfinite(row)).tolist()
        finite = [number for number in numbers if number is not None]
        np.testing.assert_array_equal(np.array(finite, np.float32), row[np.isfinite(row)])
        assert finite == sorted(finite)


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


def test_whole_seconds_have_no_fraction():
    assert json.dumps([seconds(900_000), seconds(1_500)]) == "[900, 1.5]"


def written_pieces(monkeypatch, forecasts):
    """Lengths of what the encoder wrote in one go, and the whole answer."""
    lengths: list[int] = []
    dumps = orjson.dumps

    def spy(value: Any, **options: Any) -> bytes:
        text = dumps(value, **options)
        lengths.append(len(text))
        return text

    monkeypatch.setattr("service.answers.orjson.dumps", spy)
    names = [forecast.kpis for forecast in forecasts]
    return lengths, forecast_answer(IDENTITY, forecasts, names, now_ms=NOON_MS)


def test_many_forecasts_are_written_by_pieces_in_their_order(monkeypatch):
    monkeypatch.setattr("service.answers._PIECE_NUMBERS", 100)
    windows = [
        KpiWindow(f"c{i}", ("A",), NOON_MS, 1000, np.ones((1, 2), np.float32)) for i in range(50)
    ]
    lengths, answer = written_pieces(monkeypatch, RepeatLast().predict(windows, 8, (0.1, 0.9)))
    assert max(lengths) < len(answer) / 5
    assert [f["cell"] for f in json.loads(answer)["forecasts"]] == [f"c{i}" for i in range(50)]


def test_a_large_forecast_is_written_kpi_by_kpi_and_says_the_same(monkeypatch):
    forecast = forecast_of(np.ones((40, 2)), (0.1, 0.5, 0.9), KPIS, 48)
    whole = forecast_answer(IDENTITY, [forecast], [KPIS], now_ms=NOON_MS)
    monkeypatch.setattr("service.answers._PIECE_NUMBERS", 1000)
    small = forecast_of([[1, 2], [3, 4]])
    lengths, answer = written_pieces(monkeypatch, [small, forecast, small])
    texts = sorted(lengths)
    # The last one is put together from texts that are there already.
    assert texts[-2] < len(answer) / 10
    first, second, third = json.loads(answer)["forecasts"]
    assert first == third
    assert second == json.loads(whole)["forecasts"][0]


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


@pytest.mark.parametrize("count", [1, 300, 3000])
def test_forecasts_that_are_written_together_keep_their_own_numbers(count):
    """Also where they fill several pieces, and where one of them differs from its neighbours."""
    rng = np.random.default_rng(count)
    forecasts, names = [], []
    for number in range(count):
        shape = (2, 5) if number % 100 == 7 else (1, 3)
        forecast = forecast_of(
            np.ones((shape[0], 1)), kpis=KPIS[: shape[0]], horizon=shape[1], levels=(0.1, 0.9)
        )
        values = rng.random((*shape, 2), dtype=np.float32)
        forecasts.append(replace(forecast, cell=f"c{number}", values=values))
        names.append([f'"{number}", %b', "%"][: shape[0]])
    text = forecast_answer(IDENTITY, forecasts, names, now_ms=NOON_MS)
    answered = json.loads(text)["forecasts"]
    for forecast, spelt, one in zip(forecasts, names, answered, strict=True):
        assert one["cell"] == forecast.cell
        assert list(one["kpis"]) == spelt
        for name, values in zip(spelt, forecast.values, strict=True):
            for position, level in enumerate(("0.1", "0.9")):
                found = np.array(one["kpis"][name][level], dtype=np.float32)
                np.testing.assert_array_equal(found, values[:, position])
