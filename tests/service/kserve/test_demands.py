"""What KServe's protocols demand of the engine: in parameters, in the query, in a header."""

from __future__ import annotations

import pytest

from model.predictor import Rung
from service.engine import Ask, Engine, Priority
from tests.service.fakes import serving

pytestmark = pytest.mark.anyio

STAMP = "2026-11-01T00:00:00Z"


def predict_v1(**demands):
    return "/v1/models/fake:predict", {"instances": [[1, 2]], "parameters": demands}


def infer_v2(**demands):
    values = {"name": "values", "datatype": "FP32", "shape": [1, 1, 2], "data": [1, 2]}
    return "/v2/models/fake/infer", {"inputs": [values], "parameters": demands}


def timeseries(**demands):
    series = {
        "type": "univariate_time_series",
        "name": "A",
        "series": [1, 2],
        "frequency": "hour",
        "start_timestamp": STAMP,
    }
    return "/v1/timeseries/forecast", {
        "model": "fake",
        "inputs": [series],
        "options": {"horizon": 1, **demands},
    }


PROTOCOLS = pytest.mark.parametrize("protocol", [predict_v1, infer_v2, timeseries])


@pytest.fixture
def asked(monkeypatch):
    """What the engine was asked, request by request."""
    asks: list[Ask] = []
    submit = Engine.submit

    def noted(self, windows, ask, ladder):
        asks.append(ask)
        return submit(self, windows, ask, ladder)

    monkeypatch.setattr(Engine, "submit", noted)
    return asks


@PROTOCOLS
async def test_parameters_demand_of_the_engine(protocol, asked):
    async with serving() as client:
        path, body = protocol(budget_ms=900, minimum_rung="full", priority="batch")
        answer = await client.post(path, body)
    assert answer.status_code == 200, answer.text
    (ask,) = asked
    assert (ask.least_rung, ask.priority) == (Rung.FULL, Priority.BATCH)
    assert ask.deadline.budget_ms == 900


@PROTOCOLS
async def test_the_parameter_wins_over_the_header(protocol, asked):
    headers = {"X-Minimum-Rung": "short", "X-Priority": "batch"}
    async with serving() as client:
        await client.post(*protocol(), **headers)
        await client.post(*protocol(minimum_rung="full", priority="control"), **headers)
    assert [(ask.least_rung, ask.priority) for ask in asked] == [
        (Rung.SHORT, Priority.BATCH),
        (Rung.FULL, Priority.CONTROL),
    ]


@PROTOCOLS
@pytest.mark.parametrize("name", ["minimum_rung", "priority"])
async def test_a_word_that_is_none_of_them_is_a_400_at_its_place(protocol, name):
    async with serving() as client:
        for word in ("best", 1):
            answer = await client.post(*protocol(**{name: word}))
            assert answer.status_code == 400
            assert f"/{name}" in answer.text


async def test_an_inference_parameter_is_refused_in_the_words_of_the_header():
    async with serving() as client:
        path, body = infer_v2(minimum_rung="best")
        by_parameter = (await client.post(path, body)).json()["error"]
        by_header = await client.post(*infer_v2(), **{"X-Minimum-Rung": "best"})
    words = "expected one of full, short, baseline, got 'best'"
    assert by_parameter == f"/parameters/minimum_rung: {words}"
    assert words in by_header.json()["error"]


async def test_the_query_of_v1_demands_too_and_its_body_wins(asked):
    query = "?minimum_rung=short&priority=batch"
    async with serving() as client:
        path, body = predict_v1()
        await client.post(path + query, body)
        path, body = predict_v1(minimum_rung="full")
        await client.post(path + query, body)
        refused = await client.post(path + "?priority=first", body)
    assert [(ask.least_rung, ask.priority) for ask in asked] == [
        (Rung.SHORT, Priority.BATCH),
        (Rung.FULL, Priority.BATCH),
    ]
    assert refused.status_code == 400
    assert "query:priority" in refused.json()["error"]


async def test_the_document_describes_the_demands_of_every_protocol():
    async with serving() as client:
        document = (await client.get("/openapi.json")).json()
    for shape in ("PredictParameters", "TimeseriesOptions"):
        fields = document["components"]["schemas"][shape]["properties"]
        assert {"budget_ms", "minimum_rung", "priority"} <= fields.keys()
    predict = document["paths"]["/v1/models/{model}:predict"]["post"]
    query = {one["name"] for one in predict["parameters"] if one["in"] == "query"}
    assert {"budget_ms", "minimum_rung", "priority"} <= query
    for path in ("/v2/models/{model}/infer", "/v1/timeseries/forecast"):
        headers = {one["name"] for one in document["paths"][path]["post"]["parameters"]}
        assert {"X-Latency-Budget-Ms", "X-Minimum-Rung", "X-Priority"} <= headers
