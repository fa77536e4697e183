"""KServe V1, in the forms that the RIC's AI/ML framework and our own clients send."""

import asyncio
import json

import numpy as np
import pytest

from service.container import Phase
from service.settings import Settings
from tests.service.fakes import FakeClock, RepeatLast, series, serving

pytestmark = pytest.mark.anyio

QOE = {"signature_name": "serving_default", "instances": [[[2.5, 1.5]] * 10]}
ROWS = {"instances": [[[1, 2], [3, None], [None, 6]]]}
NUMBERS = {"instances": [[1, None, 3]]}


async def predict(body, query="", model=None):
    async with serving(predictor=model) as client:
        return await client.post(f"/v1/models/fake:predict{query}", body)


def error(answer, status=400):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert list(body) == ["error"]
    return body["error"]


async def test_what_the_frameworks_sample_sends_is_answered_in_its_shape():
    answer = await predict(QOE)
    assert answer.json() == {"predictions": [[3.0, 2.0]]}


async def test_a_body_is_read_whatever_its_content_type():
    async with serving() as client:
        answer = await client.http.post(
            "/v1/models/fake:predict",
            content=json.dumps(QOE),
            headers={"content-type": "application/x-www-form-urlencoded"},
        )
    assert answer.json() == {"predictions": [[3.0, 2.0]]}


async def test_rows_become_a_window_that_ends_at_the_newest_full_step():
    model = RepeatLast()
    clock = FakeClock()
    clock.advance(61)
    async with serving(predictor=model, clock=clock) as client:
        await client.post("/v1/models/fake:predict?kpi=A&kpi=B&step_seconds=60", ROWS)
    window = model.windows[-1]
    np.testing.assert_array_equal(window.values, [[1, 3, np.nan], [2, np.nan, 6]])
    assert window.kpis == ("A", "B")
    assert window.step_ms == 60_000
    assert window.end_ms == clock.now_ms() - 1000


async def test_parameters_say_what_rows_mean():
    model = RepeatLast()
    parameters = {
        "kpis": ["pmPrbUsedDl", "B"],
        "step_seconds": 1,
        "start": "2026-11-01T00:00:00Z",
        "time_zone": "Europe/Madrid",
        "country": "ES",
    }
    assert (await predict({**ROWS, "parameters": parameters}, model=model)).status_code == 200
    window = model.windows[-1]
    assert window.kpis == ("RRU.PrbTotDl", "B")
    assert window.start.isoformat() == "2026-11-01T00:00:00+00:00"
    assert (window.step_ms, window.time_zone, window.country) == (1000, "Europe/Madrid", "ES")


async def test_unnamed_features_are_gauges_of_a_quarter_of_an_hour():
    model = RepeatLast()
    await predict(ROWS, model=model)
    assert model.windows[-1].kpis == ("feature.0", "feature.1")
    assert model.windows[-1].step_ms == 900_000


async def test_the_body_wins_over_the_query():
    model = RepeatLast()
    body = {**NUMBERS, "parameters": {"horizon": 3, "kpis": ["A"]}}
    answer = await predict(body, "?horizon=2&step_seconds=5&kpi=B", model)
    assert len(answer.json()["predictions"][0]) == 3
    assert model.windows[-1].kpis == ("A",)
    assert model.windows[-1].step_ms == 5000


async def test_a_horizon_makes_a_list_of_steps():
    assert (await predict(ROWS, "?horizon=2")).json()["predictions"] == [[[3.5, 6.5]] * 2]
    assert (await predict(NUMBERS, "?horizon=2")).json()["predictions"] == [[3.5, 3.5]]
    assert (await predict(NUMBERS)).json()["predictions"] == [3.5]


async def test_quantiles_come_beside_the_median_in_its_shape():
    answer = await predict(ROWS, "?quantiles=0.1,0.9")
    assert answer.json()["predictions"] == [
        {"median": [3.5, 6.5], "quantiles": {"0.1": [3.1, 6.1], "0.9": [3.9, 6.9]}}
    ]


async def test_a_series_is_answered_with_all_that_a_forecast_has():
    body = {"instances": [series()], "parameters": {"horizon": 2, "quantiles": [0.9]}}
    (prediction,) = (await predict(body)).json()["predictions"]
    assert prediction == {
        "cell": "ManagedElement=1,NRCellDU=32",
        "start": "2026-11-01T10:45:00Z",
        "step_seconds": 900,
        "median": {"RRU.PrbTotDl": [16.0, 16.0], "DRB.MeanActiveUeDl": [4.5, 4.5]},
        "quantiles": {
            "RRU.PrbTotDl": {"0.9": [16.4, 16.4]},
            "DRB.MeanActiveUeDl": {"0.9": [4.9, 4.9]},
        },
        "rung": "full",
        "context": {
            "start": "2026-11-01T10:00:00Z",
            "end": "2026-11-01T10:45:00Z",
            "missing_ratio": 0.166667,
            "age_seconds": 4500.0,
        },
    }


async def test_instances_of_all_forms_are_answered_in_their_order():
    body = {"instances": [series(), [[1.0], [2.0]], [4, 5], series(cell="b")]}
    first, rows, number, last = (await predict(body)).json()["predictions"]
    assert first["cell"] == "ManagedElement=1,NRCellDU=32"
    assert rows == [2.5]
    assert number == 5.5
    assert last["cell"] == "b"


async def test_a_value_that_cannot_be_known_is_null():
    assert (await predict({"instances": [[None, None]]})).json() == {"predictions": [None]}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "/instances: expected this field"),
        ({"instances": []}, "/instances"),
        ({"instances": [[]]}, "/instances/0"),
        ({"instances": [[[]]]}, "/instances/0/0"),
        ({"instances": [[[1, 2], [1]]]}, "/instances/0: expected rows of one length"),
        ({"instances": [[[1], 2]]}, "/instances/0/1"),
        ({"instances": [[1, "2"]]}, "/instances/0/1: expected a number"),
        ({"instances": [[1, 1e39]]}, "/instances/0: expected a value within"),
        ({"instances": ["x"]}, "/instances/0"),
        ({"instances": [series(start="soon")]}, "/instances/0/start: expected an RFC 3339"),
        ({"instances": [series(time_zone="Mars")]}, "/instances/0/time_zone: expected an IANA"),
        ({**NUMBERS, "parameters": {"time_zone": "Mars"}}, "/parameters/time_zone: expected"),
        ({**NUMBERS, "parameters": {"country": "XX"}}, "/parameters/country"),
        ({**NUMBERS, "parameters": {"step_seconds": 0.0001}}, "/parameters/step_seconds"),
        ({**NUMBERS, "parameters": {"kpis": ["a", "b"]}}, "/parameters/kpis: expected 1 names"),
        ({**ROWS, "parameters": {"kpis": ["a", "a"]}}, "/parameters/kpis: expected each name"),
        (
            {**ROWS, "parameters": {"kpis": ["RRU.PrbTotDl", "pmPrbUsedDl"]}},
            "/parameters/kpis: expected each KPI once",
        ),
        ({"instances": [[[1] * 17]]}, "/instances/0: expected at most 16 KPIs"),
        ({**NUMBERS, "parameters": {"start": "1793491200"}}, "/parameters/start: expected an RFC"),
        ({**NUMBERS, "parameters": {"horizon": 0}}, "/parameters/horizon: expected a horizon"),
        ({**NUMBERS, "parameters": {"quantiles": [0.99]}}, "/parameters/quantiles"),
        ({**NUMBERS, "parameters": {"budget_ms": 0.1}}, "/parameters/budget_ms"),
        ({**NUMBERS, "parameters": {"horizn": 1}}, "/parameters/horizn: unknown field"),
        ({**NUMBERS, "parameters": {"start": "1960-01-01T00:00:00Z"}}, "/parameters/start"),
    ],
)
async def test_what_cannot_be_used_is_a_400_that_names_its_place(body, words):
    assert words in error(await predict(body))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("?horizon=99", "query:horizon: expected a horizon"),
        ("?horizon=x", "query:horizon"),
        ("?quantiles=a", "query:quantiles"),
        ("?time_zone=Mars", "query:time_zone"),
        ("?step_seconds=0", "query:step_seconds"),
        ("?budget_ms=0", "query:budget_ms"),
        ("?hrizon=1", "query:hrizon: unknown field"),
        ("?kpi=pmPrbUsedDl&kpi=RRU.PrbTotDl", "query:kpi: expected each KPI once"),
    ],
)
async def test_what_cannot_be_used_in_the_query_is_a_400_too(query, words):
    body = ROWS if "kpi" in query else NUMBERS
    assert words in error(await predict(body, query))


async def test_a_body_that_is_no_json_is_a_400():
    async with serving() as client:
        answer = await client.http.post("/v1/models/fake:predict", content=b"{")
    assert "expected JSON" in error(answer)


async def test_models_are_listed_and_ready():
    async with serving() as client:
        assert (await client.get("/v1/models")).json()["models"] == ["fake"]
        assert (await client.get("/v1/models/fake")).json() == {"name": "fake", "ready": True}


async def test_another_model_is_not_found():
    async with serving() as client:
        error(await client.get("/v1/models/other"), 404)
        error(await client.post("/v1/models/other:predict", NUMBERS), 404)


async def test_a_stopping_service_is_a_503_with_retry_after():
    async with serving() as client:
        client.services.move_to(Phase.DRAINING, "stopping")
        for answer in (
            await client.get("/v1/models/fake"),
            await client.post("/v1/models/fake:predict", NUMBERS),
        ):
            assert error(answer, 503) == "stopping"
            assert answer.headers["retry-after"]


async def test_a_model_whose_engine_died_is_not_ready():
    async with serving() as client:
        assert client.services.running is not None
        await client.services.running.engine.drain(0)
        assert "engine" in error(await client.get("/v1/models/fake"), 503)


async def test_a_full_queue_is_a_429_with_retry_after():
    model = RepeatLast()
    async with serving(Settings(queue_limit=1), predictor=model) as client:
        model.gate.clear()
        first = asyncio.create_task(client.post("/v1/models/fake:predict", NUMBERS))
        assert await asyncio.to_thread(model.entered.acquire, timeout=30)
        assert await asyncio.to_thread(model.entered.acquire, timeout=30)
        answer = await client.post("/v1/models/fake:predict", NUMBERS)
        model.gate.set()
        assert (await first).status_code == 200
    error(answer, 429)
    assert int(answer.headers["retry-after"]) >= 1


async def test_the_budget_holds_and_a_late_answer_is_a_504():
    model, clock = RepeatLast(), FakeClock()
    async with serving(predictor=model, clock=clock) as client:
        model.gate.clear()
        late = asyncio.create_task(client.post("/v1/models/fake:predict?budget_ms=50", NUMBERS))
        assert await asyncio.to_thread(model.entered.acquire, timeout=30)
        assert await asyncio.to_thread(model.entered.acquire, timeout=30)
        clock.advance(0.06)
        assert "50 ms" in error(await late, 504)
        model.gate.set()


async def test_metrics_name_the_route_and_never_the_model():
    async with serving() as client:
        await client.post("/v1/models/fake:predict", NUMBERS)
        await client.get("/v1/models/other")
        for route in ("/v1/models/{model}:predict", "/v1/models/{model}"):
            assert await client.metric("rancast_request_duration_seconds_count", route=route) == 1
        assert await client.metric("rancast_forecasts_total", rung="full") == 1
        used = "rancast_latency_budget_used_ratio_count"
        assert await client.metric(used, route="/v1/models/{model}:predict") == 1


async def test_an_application_under_a_prefix_keeps_the_protocols_errors():
    async with serving() as client:
        client.app.root_path = "/rancast"
        error(await client.get("/rancast/v1/models/other"), 404)


async def test_a_method_that_predict_does_not_have_is_told_the_one_that_it_has():
    async with serving() as client:
        answer = await client.http.request("OPTIONS", "/v1/models/fake:predict")
        assert answer.status_code == 405
        assert answer.headers["allow"] == "POST"
        assert (await client.get("/v1/models/fake")).status_code == 200
