"""The Open Inference Protocol, in the shapes of its specification."""

import json

import numpy as np
import pytest

from service.container import Phase
from service.settings import Settings
from tests.service.fakes import FakeClock, RepeatLast, serving

pytestmark = pytest.mark.anyio

LENGTH = "inference-header-content-length"
INFER = "/v2/models/fake/infer"
VALUES = [[[12.0, None, 15.5], [3.0, 4.0, 4.0]]]


def tensor(name, datatype, shape, data):
    return {"name": name, "datatype": datatype, "shape": shape, "data": data}


def infer_request(*inputs, outputs=None, **parameters):
    body = {
        "id": "42",
        "inputs": [tensor("values", "FP32", [1, 2, 3], VALUES), *inputs],
        "parameters": {"horizon": 2, **parameters},
    }
    return body if outputs is None else {**body, "outputs": outputs}


async def ask(body, model=None, clock=None, path=INFER):
    async with serving(predictor=model, clock=clock) as client:
        return await client.post(path, body)


def outputs_of(answer):
    assert answer.status_code == 200, answer.text
    return {output["name"]: output for output in answer.json()["outputs"]}


def error(answer, status=400):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert list(answer.json()) == ["error"]
    return answer.json()["error"]


async def test_the_server_says_what_it_is():
    async with serving() as client:
        said = (await client.get("/v2")).json()
        assert said == {
            "name": "rancast",
            "version": client.app.version,
            "extensions": ["binary_tensor_data"],
        }


async def test_a_started_server_lives_and_is_ready():
    async with serving() as client:
        assert (await client.get("/v2/health/live")).json() == {"live": True}
        assert (await client.get("/v2/health/ready")).json() == {"ready": True, "live": True}
        ready = {"name": "fake", "ready": True}
        assert (await client.get("/v2/models/fake/ready")).json() == ready
        assert (await client.get("/v2/models/fake/versions/1.2.3/ready")).json() == ready
        assert (await client.get("/v2/models")).json() == {"models": ["fake"]}


async def test_a_stopping_server_lives_but_is_not_ready():
    async with serving() as client:
        client.services.move_to(Phase.DRAINING, "stopping")
        assert (await client.get("/v2/health/live")).status_code == 200
        for path in ("/v2/health/ready", "/v2/models/fake/ready", "/v2/models/fake"):
            assert error(await client.get(path), 503) == "stopping"
        answer = await client.post(INFER, infer_request())
        assert error(answer, 503) == "stopping"
        assert answer.headers["retry-after"]


async def test_a_dead_engine_is_neither_ready_nor_alive_and_probes_are_no_refusals():
    async with serving() as client:
        assert client.services.running is not None
        await client.services.running.engine.drain(0)
        assert "engine" in error(await client.get("/v2/health/live"), 503)
        assert "engine" in error(await client.get("/v2/health/ready"), 503)
        assert await client.metric("rancast_requests_rejected_total") == 0
        assert "engine" in error(await client.get("/v2/models/fake/ready"), 503)


async def test_a_model_says_which_tensors_it_takes_and_gives():
    async with serving() as client:
        said = (await client.get("/v2/models/fake")).json()
        assert said == (await client.get("/v2/models/fake/versions/1.2.3")).json()
    assert said["name"] == "fake"
    assert said["versions"] == ["1.2.3"]
    assert said["platform"] == "pytorch"
    assert said["inputs"][0] == {"name": "values", "datatype": "FP32", "shape": [-1, -1, -1]}
    assert said["outputs"][0] == {
        "name": "forecast",
        "datatype": "FP32",
        "shape": [-1, -1, -1, -1],
    }


async def test_all_outputs_of_the_metadata_are_answered_in_their_type():
    async with serving() as client:
        promised = (await client.get("/v2/models/fake")).json()["outputs"]
        answer = await client.post(INFER, infer_request())
    body = answer.json()
    assert (body["model_name"], body["model_version"], body["id"]) == ("fake", "1.2.3", "42")
    assert [(each["name"], each["datatype"]) for each in promised] == [
        (each["name"], each["datatype"]) for each in body["outputs"]
    ]
    for each, given in zip(promised, body["outputs"], strict=True):
        assert len(each["shape"]) == len(given["shape"])
        assert np.prod(given["shape"]) == len(given["data"])


async def test_a_forecast_runs_over_series_kpis_steps_and_levels():
    outputs = outputs_of(await ask(infer_request(quantiles="0.1,0.9")))
    assert outputs["forecast"]["shape"] == [1, 2, 2, 2]
    assert outputs["forecast"]["data"] == [15.6, 16.4, 15.6, 16.4, 4.1, 4.9, 4.1, 4.9]
    assert outputs["quantile"]["data"] == [0.1, 0.9]
    assert outputs["rung"]["data"] == ["full"]
    assert outputs["missing_ratio"]["data"] == [0.16666667]


async def test_inputs_say_what_the_values_are():
    model = RepeatLast()
    body = infer_request(
        tensor("start_ms", "INT64", [1], [1_793_491_200_000]),
        tensor("step_seconds", "FP64", [1], [0.25]),
        tensor("cell", "BYTES", [1], ["NRCellDU=1"]),
        tensor("kpi", "BYTES", [2], ["pmPrbUsedDl", "B"]),
        time_zone="Europe/Madrid",
        country="ES",
    )
    outputs = outputs_of(await ask(body, model))
    window = model.windows[-1]
    assert window.kpis == ("RRU.PrbTotDl", "B")
    assert window.start.isoformat() == "2026-11-01T00:00:00+00:00"
    assert (window.step_ms, window.time_zone, window.country) == (250, "Europe/Madrid", "ES")
    assert outputs["cell"]["data"] == ["NRCellDU=1"]
    assert outputs["kpi"]["data"] == ["pmPrbUsedDl", "B"]
    assert outputs["start_ms"]["data"] == [1_793_491_200_750]
    assert outputs["step_seconds"]["data"] == [0.25]


async def test_what_is_left_out_has_its_default():
    model, clock = RepeatLast(), FakeClock()
    body = {"inputs": [tensor("values", "INT32", [2, 1, 3], [1, 2, 3, 4, 5, 6])]}
    outputs = outputs_of(await ask(body, model, clock))
    assert outputs["forecast"]["shape"] == [2, 1, 24, 3]
    assert outputs["cell"]["data"] == ["0", "1"]
    assert outputs["kpi"]["data"] == ["feature.0"]
    assert outputs["start_ms"]["data"] == [clock.now_ms()] * 2
    assert outputs["step_seconds"]["data"] == [900, 900]
    assert outputs["age_seconds"]["data"] == [0, 0]


async def test_series_of_one_request_may_start_and_step_apart():
    model = RepeatLast()
    body = {
        "inputs": [
            tensor("values", "FP64", [2, 1, 1], [1, 2]),
            tensor("start_ms", "INT64", [2], [0, 5000]),
            tensor("step_seconds", "INT32", [2], [1, 60]),
        ]
    }
    await ask(body, model)
    assert [(w.start_ms, w.step_ms) for w in model.windows[-2:]] == [(0, 1000), (5000, 60_000)]


async def test_only_the_outputs_that_were_asked_for_come_and_in_that_order():
    body = infer_request(outputs=[{"name": "kpi"}, {"name": "forecast"}])
    assert list(outputs_of(await ask(body))) == ["kpi", "forecast"]


async def test_a_request_without_an_id_gets_one():
    body = infer_request()
    del body["id"]
    assert (await ask(body)).json()["id"]


async def test_what_cannot_be_said_is_null():
    body = {"inputs": [tensor("values", "FP32", [1, 1, 2], [None, None])]}
    outputs = outputs_of(await ask(body))
    assert set(outputs["forecast"]["data"]) == {None}
    assert outputs["age_seconds"]["data"] == [None]


async def post_binary(inputs, arrays, **members):
    """A request whose tensors follow its JSON."""
    described = [
        {**each, "parameters": {"binary_data_size": len(raw)}}
        for each, raw in zip(inputs, arrays, strict=True)
    ]
    text = json.dumps({"inputs": described, **members}).encode()
    async with serving(Settings(profile="non-rt")) as client:
        return await client.http.post(
            INFER,
            content=text + b"".join(arrays),
            headers={LENGTH: str(len(text)), "content-type": "application/octet-stream"},
        )


async def test_tensors_come_and_go_as_bytes():
    values = np.array([[[12, np.nan, 15.5]]], dtype="<f4")
    answer = await post_binary(
        [
            {"name": "values", "datatype": "FP32", "shape": [1, 1, 3]},
            {"name": "kpi", "datatype": "BYTES", "shape": [1]},
        ],
        [values.tobytes(), b"\x0c\0\0\0RRU.PrbTotDl"],
        outputs=[{"name": "kpi"}, {"name": "forecast", "parameters": {"binary_data": True}}],
        parameters={"horizon": 2, "quantiles": "0.5"},
    )
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/octet-stream"
    end = int(answer.headers[LENGTH])
    kpi, forecast = json.loads(answer.content[:end])["outputs"]
    assert kpi["data"] == ["RRU.PrbTotDl"]
    assert forecast["shape"] == [1, 1, 2, 1]
    assert np.frombuffer(answer.content[end:], dtype="<f4").tolist() == [16, 16]


async def test_all_outputs_come_as_bytes_where_the_request_says_so():
    values = np.ones((1, 1, 3), dtype="<f4")
    answer = await post_binary(
        [{"name": "values", "datatype": "FP32", "shape": [1, 1, 3]}],
        [values.tobytes()],
        parameters={"binary_data_output": True},
    )
    end = int(answer.headers[LENGTH])
    outputs = json.loads(answer.content[:end])["outputs"]
    sizes = [each["parameters"]["binary_data_size"] for each in outputs]
    assert sum(sizes) == len(answer.content) - end
    assert all("data" not in each for each in outputs)


async def test_half_of_the_bytes_are_a_400():
    answer = await post_binary(
        [{"name": "values", "datatype": "FP32", "shape": [1, 1, 3]}], [bytes(6)]
    )
    assert "12 bytes" in error(answer)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "/inputs: expected this field"),
        ({"inputs": []}, "/inputs"),
        ({"inputs": [tensor("kpi", "BYTES", [1], ["a"])]}, "/inputs: expected a tensor values"),
        ({"inputs": [tensor("x", "FP32", [1], [1])]}, "/inputs/0/name: expected one of values"),
        ({"inputs": [tensor("values", "FP32", [3], [1, 2, 3])]}, "3 dimensions"),
        ({"inputs": [tensor("values", "FP32", [0, 1, 1], [])]}, "size over 0"),
        ({"inputs": [tensor("values", "BYTES", [1, 1, 1], ["a"])]}, "expected numbers"),
        ({"inputs": [tensor("values", "FP64", [1, 1, 1], [1e39])]}, "/inputs/0: expected a value"),
        (infer_request(tensor("kpi", "BYTES", [1], ["a"])), "/inputs/1: expected 2 names"),
        (infer_request(tensor("kpi", "BYTES", [2], ["a", "a"])), "/inputs/1: expected each name"),
        (infer_request(tensor("kpi", "BYTES", [2], ["a", ""])), "/inputs/1: expected names of 1"),
        (infer_request(tensor("kpi", "FP32", [2], [1, 2])), "/inputs/1: expected BYTES"),
        (infer_request(tensor("cell", "BYTES", [1], [""])), "/inputs/1: expected names of 1"),
        (infer_request(tensor("start_ms", "FP64", [1], [0.5])), "/inputs/1: expected whole"),
        (infer_request(tensor("start_ms", "INT64", [1], [-5])), "/inputs/1: expected a time"),
        (infer_request(tensor("start_ms", "INT64", [1], [2**62])), "/inputs/1: expected a time"),
        (infer_request(tensor("start_ms", "INT64", [2], [1, 2])), "/inputs/1: expected 1 or 1"),
        (infer_request(tensor("step_seconds", "FP32", [1], [0])), "/inputs/1: expected a step"),
        (infer_request(tensor("step_seconds", "FP64", [1], [1e-4])), "/inputs/1"),
        (
            infer_request(tensor("step_seconds", "FP32", [1], [1]), step_seconds=1),
            "/parameters/step_seconds: expected it once",
        ),
        (infer_request(step_seconds=-1), "/parameters/step_seconds: expected a step"),
        (infer_request(horizon=0), "/parameters/horizon: expected a horizon"),
        (infer_request(horizon=1.5), "/parameters/horizon: expected a whole number"),
        (infer_request(horizon=True), "/parameters/horizon: expected a whole number"),
        (infer_request(quantiles="low"), "/parameters/quantiles"),
        (infer_request(quantiles=[0.1]), "/parameters/quantiles: expected a text"),
        (infer_request(quantiles=0.99), "/parameters/quantiles: expected quantiles of"),
        (infer_request(budget_ms="x"), "/parameters/budget_ms: expected a number"),
        (infer_request(budget_ms=10**400), "/parameters/budget_ms"),
        (infer_request(budget_ms=0), "/parameters/budget_ms: expected a budget"),
        (infer_request(time_zone="Mars"), "/parameters/time_zone: expected an IANA"),
        (infer_request(time_zone=1), "/parameters/time_zone: expected a text"),
        (infer_request(horizn=1), "/parameters/horizn: unknown parameter"),
        (infer_request(binary_data_output="yes"), "/parameters/binary_data_output"),
        (infer_request(outputs=[{"name": "x"}]), "/outputs/0/name: expected one of forecast"),
        (infer_request(outputs=[{"name": "kpi"}] * 2), "/outputs: expected each name once"),
        (
            infer_request(outputs=[{"name": "kpi", "parameters": {"binary_data": 1}}]),
            "/outputs/0/parameters/binary_data",
        ),
    ],
)
async def test_what_cannot_be_used_is_a_400_that_names_its_place(body, words):
    assert words in error(await ask(body))


async def test_another_model_or_version_is_not_found():
    async with serving() as client:
        for path in ("/v2/models/other", "/v2/models/fake/versions/2", "/v2/models/fake/x"):
            error(await client.get(path), 404)
        for path in ("/v2/models/other/infer", "/v2/models/fake/versions/2/infer"):
            error(await client.post(path, infer_request()), 404)


async def test_a_version_can_be_asked_by_its_name():
    answer = await ask(infer_request(), path="/v2/models/fake/versions/1.2.3/infer")
    assert answer.json()["model_version"] == "1.2.3"


async def test_more_series_than_the_limit_are_too_large():
    async with serving(Settings(max_series_per_request=1)) as client:
        body = {"inputs": [tensor("values", "FP32", [2, 1, 1], [1, 2])]}
        error(await client.post(INFER, body), 413)


async def test_many_series_are_answered_in_their_order():
    body = {"inputs": [tensor("values", "FP32", [100, 1, 1], list(range(100)))]}
    async with serving(Settings(profile="non-rt")) as client:
        answer = await client.post(INFER, {**body, "parameters": {"quantiles": 0.5, "horizon": 1}})
    assert outputs_of(answer)["forecast"]["data"] == [i + 0.5 for i in range(100)]


async def test_metrics_name_the_route_and_never_model_or_version():
    async with serving() as client:
        await client.post("/v2/models/fake/versions/1.2.3/infer", infer_request())
        await client.get("/v2/models/other/ready")
        for route in (
            "/v2/models/{model}/versions/{version}/infer",
            "/v2/models/{model}/ready",
        ):
            assert await client.metric("rancast_request_duration_seconds_count", route=route) == 1
