import asyncio
import json
import threading

import pytest

from service import answers
from service.codecs import answer_forms
from service.codecs.answer_forms import AnswerForm
from service.settings import Settings
from tests.service.fakes import FakeClock, RepeatLast, forecast_request, series, serving

pytestmark = pytest.mark.anyio

JSON = {"content-type": "application/json"}


async def ask(body, settings=None, **headers):
    async with serving(settings) as client:
        return await client.post("/v1/forecast", body, **headers)


def problem(answer, status, path=None):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == status
    assert body.get("path") == path
    return body


async def test_a_request_is_answered_with_quantiles_and_provenance():
    answer = await ask(forecast_request(quantiles=[0.1, 0.5]))
    assert answer.status_code == 200
    assert answer.json() == {
        "model": {"name": "fake", "version": "1.2.3", "digest": "sha256:feed"},
        "forecasts": [
            {
                "cell": "ManagedElement=1,NRCellDU=32",
                "start": "2026-11-01T10:45:00Z",
                "step_seconds": 900,
                "kpis": {
                    "RRU.PrbTotDl": {"0.1": [15.6, 15.6], "0.5": [16.0, 16.0]},
                    "DRB.MeanActiveUeDl": {"0.1": [4.1, 4.1], "0.5": [4.5, 4.5]},
                },
                "rung": "full",
                "context": {
                    "start": "2026-11-01T10:00:00Z",
                    "end": "2026-11-01T10:45:00Z",
                    "missing_ratio": 0.166667,
                    "age_seconds": 4500.0,
                },
            }
        ],
    }


async def test_quantiles_default_to_three():
    answer = await ask(forecast_request())
    assert list(answer.json()["forecasts"][0]["kpis"]["RRU.PrbTotDl"]) == ["0.1", "0.5", "0.9"]


@pytest.mark.parametrize(
    "kpis",
    [
        {"RRU.PrbTotDl": [None, None]},
        {"RRU.PrbTotDl": [5, 5, 5]},
        {"RRU.PrbTotDl": [0, 0]},
        {"vendor.Unheard": [1, 2]},
    ],
    ids=["all null", "constant", "all zero", "unknown"],
)
async def test_unusual_series_are_answered(kpis):
    answer = await ask(forecast_request(series=[series(kpis=kpis)]))
    assert answer.status_code == 200
    (quantiles,) = answer.json()["forecasts"][0]["kpis"].values()
    assert len(quantiles["0.5"]) == 2


async def test_an_alias_comes_back_as_it_was_sent():
    answer = await ask(forecast_request(series=[series(kpis={"pmPrbUsedDl": [1]})]))
    assert list(answer.json()["forecasts"][0]["kpis"]) == ["pmPrbUsedDl"]


async def test_many_series_are_answered_in_their_order():
    many = [series(cell=f"c{i}") for i in range(100)]
    answer = await ask(forecast_request(series=many), Settings(profile="non-rt"))
    assert [f["cell"] for f in answer.json()["forecasts"]] == [f"c{i}" for i in range(100)]


async def test_events_and_the_country_reach_the_model():
    event = {"start": "2026-11-01T18:00:00Z", "end": "2026-11-01T21:00:00Z", "kind": "match"}
    predictor = RepeatLast()
    many = [series(cell="a", country="ES-CT", events=[event]), series(cell="b")]
    async with serving(Settings(holiday_country="JP"), predictor=predictor) as client:
        answer = await client.post("/v1/forecast", forecast_request(series=many))
    assert answer.status_code == 200
    found = {window.cell: window for window in predictor.windows}
    assert found["a"].country == "ES-CT"
    assert found["b"].country == "JP"
    (planned,) = found["a"].events
    assert (planned.end_ms - planned.start_ms, planned.kind) == (3 * 3_600_000, "match")
    assert found["b"].events == ()


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        ({"horizon": 0}, "/horizon", "1 to 48 steps, got 0"),
        ({"horizon": 49}, "/horizon", "1 to 48 steps, got 49"),
        ({"horizon": -3}, "/horizon", "1 to 48"),
        ({"horizon": 2.5}, "/horizon", "whole number"),
        ({"horizon": "2"}, "/horizon", "whole number"),
        ({"quantiles": [0.0]}, "/quantiles", "0.05 to 0.95"),
        ({"quantiles": [1.5]}, "/quantiles", "0.05 to 0.95"),
        ({"quantiles": [0.5, 0.99]}, "/quantiles", "0.05 to 0.95"),
        ({"quantiles": [0.9, 0.1]}, "/quantiles", "ascending"),
        ({"quantiles": [0.5, 0.5]}, "/quantiles", "each once"),
        ({"quantiles": []}, "/quantiles", "at least 1"),
        ({"budget_ms": 0}, "/budget_ms", "1 to 60000 ms"),
        ({"budget_ms": 1e9}, "/budget_ms", "1 to 60000 ms"),
        ({"series": []}, "/series", "at least 1"),
        ({"surprise": 1}, "/surprise", "unknown field"),
    ],
)
async def test_what_cannot_be_asked_is_refused_with_its_field(change, path, words):
    body = problem(await ask(forecast_request(**change)), 422, path)
    assert words in body["detail"]


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        ({"start": "2026-11-01T10:00:00"}, "/series/0/start", "with an offset"),
        ({"start": "yesterday"}, "/series/0/start", "RFC 3339"),
        ({"start": 1793534400}, "/series/0/start", "RFC 3339"),
        ({"step_seconds": 0}, "/series/0/step_seconds", "greater than 0"),
        ({"step_seconds": -900}, "/series/0/step_seconds", "greater than 0"),
        ({"step_seconds": 1e9}, "/series/0/step_seconds", "less than or equal to"),
        ({"time_zone": "Mars/Olympus"}, "/series/0/time_zone", "Europe/Madrid"),
        ({"country": "XX"}, "/series/0/country", "such as ES or ES-CT"),
        ({"country": ""}, "/series/0/country", "at least 1 character"),
        ({"kpis": {}}, "/series/0/kpis", "at least 1"),
        ({"kpis": {"A": []}}, "/series/0/kpis/A", "at least 1"),
        ({"kpis": {"A": [1, "x"]}}, "/series/0/kpis/A/1", "expected a number, got 'x'"),
        ({"kpis": {"A": [True]}}, "/series/0/kpis/A/0", "expected a number"),
        ({"kpis": {"A": [1], "B": [1, 2]}}, "/series/0/kpis/B", "expected 1 samples"),
        ({"kpis": {"": [1]}}, "/series/0/kpis/", "at least 1 character"),
        ({"cell": ""}, "/series/0/cell", "at least 1 character"),
        ({"unit": "%"}, "/series/0/unit", "unknown field"),
    ],
)
async def test_a_series_that_cannot_be_used_is_refused_with_its_field(change, path, words):
    answer = await ask(forecast_request(series=[series(**change)]))
    assert words in problem(answer, 422, path)["detail"]


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999"])
async def test_a_number_that_is_not_finite_is_refused_with_its_place(literal):
    text = json.dumps(forecast_request(series=[series(kpis={"A": [1, 777]})]))
    async with serving() as client:
        answer = await client.http.post(
            "/v1/forecast", content=text.replace("777", literal), headers=JSON
        )
    assert "finite" in problem(answer, 422, "/series/0/kpis/A/1")["detail"]


async def test_several_faults_are_listed():
    body = problem(await ask({"series": [series()], "when": 1}), 422, "/horizon")
    assert [error["path"] for error in body["errors"]] == ["/horizon", "/when"]


async def test_a_list_full_of_faults_is_read_to_the_first():
    body = problem(
        await ask(forecast_request(series=[series(kpis={"A": ["x"] * 1000})])),
        422,
        "/series/0/kpis/A/0",
    )
    assert "errors" not in body


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b'{"series": [}', "line 1 column 13"),
        (b'{"series":\n [1, 2', "line 2"),
        (b"", "line 1 column 0"),
        (b"\xff\xfe", "line 1"),
    ],
)
async def test_a_body_that_is_not_json_is_refused_with_the_place(content, place):
    async with serving() as client:
        answer = await client.http.post("/v1/forecast", content=content, headers=JSON)
    assert place in problem(answer, 400)["detail"]


async def test_json_of_another_shape_is_refused():
    async with serving() as client:
        problem(await client.http.post("/v1/forecast", content=b"[1]", headers=JSON), 422, "")


@pytest.mark.parametrize("given", ["text/csv", "application/x-www-form-urlencoded", ""])
async def test_another_content_type_is_refused(given):
    headers = {"content-type": given} if given else {}
    async with serving() as client:
        answer = await client.http.post("/v1/forecast", content=b"{}", headers=headers)
    assert "application/json" in problem(answer, 415)["detail"]
    assert "application/vnd.apache.arrow.stream" in answer.headers["accept"]


async def test_a_content_type_may_have_parameters():
    async with serving() as client:
        answer = await client.http.post(
            "/v1/forecast",
            content=json.dumps(forecast_request()),
            headers={"content-type": "Application/JSON; charset=utf-8"},
        )
    assert answer.status_code == 200


async def test_a_body_in_an_unknown_coding_is_refused_with_those_that_are_read():
    answer = await ask(forecast_request(), **{"content-encoding": "br"})
    assert "br" in problem(answer, 415)["detail"]
    assert answer.headers["accept-encoding"] == "gzip, zstd"


async def test_more_series_than_the_limit_are_too_large():
    settings = Settings(max_series_per_request=2)
    answer = await ask(forecast_request(series=[series()] * 3), settings)
    assert "at most 2 series" in problem(answer, 413)["detail"]


async def test_more_kpis_than_the_limit_are_refused():
    answer = await ask(forecast_request(), Settings(max_kpis=1))
    problem(answer, 422, "/series/0/kpis")


async def test_a_body_that_says_it_is_over_the_limit_is_refused_unread():
    async with serving(Settings(max_body_bytes=1024)) as client:
        answer = await client.http.post(
            "/v1/forecast", content=b"", headers={**JSON, "content-length": "2000"}
        )
    problem(answer, 413)
    assert answer.headers["connection"] == "close"


async def test_a_body_without_a_length_is_read_only_to_the_limit():
    sent = 0

    async def endless():
        nonlocal sent
        while True:
            sent += 1
            yield b" " * 512

    async with serving(Settings(max_body_bytes=1024)) as client:
        answer = await client.http.post("/v1/forecast", content=endless(), headers=JSON)
    problem(answer, 413)
    assert sent == 3


async def test_a_large_body_is_decoded_as_a_small_one_is():
    long = [float(i % 7) for i in range(100_000)]
    answer = await ask(
        forecast_request(series=[series(kpis={"A": long})]), Settings(profile="non-rt")
    )
    assert answer.status_code == 200


async def test_a_full_queue_answers_429_with_retry_after():
    model = RepeatLast()
    async with serving(Settings(queue_limit=1), predictor=model) as client:
        model.gate.clear()
        first = asyncio.create_task(client.post("/v1/forecast", forecast_request()))
        assert await asyncio.to_thread(model.entered.acquire, timeout=30)
        assert await asyncio.to_thread(model.entered.acquire, timeout=30)
        answer = await client.post("/v1/forecast", forecast_request())
        problem(answer, 429)
        assert int(answer.headers["retry-after"]) >= 1
        model.gate.set()
        assert (await first).status_code == 200
        labels = {"route": "/v1/forecast", "reason": "full"}
        assert await client.metric("rancast_requests_rejected_total", **labels) == 1
        # Of the two only the first was accepted, and had to be in time.
        assert await client.metric("rancast_latency_budget_used_ratio_count") == 1


async def test_a_deadline_that_passes_answers_504_and_is_counted_with_its_stage():
    model, clock = RepeatLast(), FakeClock()
    async with serving(predictor=model, clock=clock) as client:
        model.forget_warm_up()
        model.gate.clear()
        late = asyncio.create_task(client.post("/v1/forecast", forecast_request(budget_ms=50)))
        assert await asyncio.to_thread(model.entered.acquire, timeout=30)
        clock.advance(0.06)
        answer = await late
        model.gate.set()
        body = problem(answer, 504)
        assert "50 ms" in body["detail"]
        assert await client.metric("rancast_latency_budget_exceeded_total", stage="infer") == 1
        used = await client.metric("rancast_latency_budget_used_ratio_sum", route="/v1/forecast")
        assert used == pytest.approx(1.2)


async def test_the_header_states_the_budget():
    answer = await ask(forecast_request(), **{"X-Latency-Budget-Ms": "soon"})
    problem(answer, 422, "header:X-Latency-Budget-Ms")


async def test_an_answer_that_was_written_too_late_is_not_sent():
    clock = FakeClock()
    model = RepeatLast()
    async with serving(predictor=model, clock=clock) as client:
        # The wall clock is read between inference and the check: there the time passes.
        def now_ms() -> int:
            clock._s += 1
            return 0

        clock.now_ms = now_ms  # type: ignore[method-assign]
        answer = await client.post("/v1/forecast", forecast_request())
        problem(answer, 504)
        assert await client.metric("rancast_latency_budget_exceeded_total", stage="encode") == 1
        assert await client.metric("rancast_forecasts_total") == 0


async def test_a_model_that_fails_answers_500_without_its_insides():
    model = RepeatLast()
    async with serving(predictor=model) as client:
        model.failing_cells = {"ManagedElement=1,NRCellDU=32"}
        answer = await client.post("/v1/forecast", forecast_request())
        # It failed quickly, which is not in time.
        assert await client.metric("rancast_latency_budget_used_ratio_count") == 0
    body = problem(answer, 500)
    assert "RuntimeError" in body["detail"]
    assert "cannot forecast" not in body["detail"]


async def test_a_client_that_leaves_takes_its_request_out_of_the_queue():
    model = RepeatLast()
    async with serving(predictor=model) as client:
        model.forget_warm_up()
        model.gate.clear()
        holder = asyncio.create_task(client.post("/v1/forecast", forecast_request()))
        assert await asyncio.to_thread(model.entered.acquire, timeout=30)
        status = await post_and_leave(client.app, json.dumps(forecast_request()).encode())
        assert status == 499
        model.gate.set()
        assert (await holder).status_code == 200
        assert len(model.calls) == 1  # the holder
        assert await client.metric("rancast_requests_rejected_total", reason="client_gone") == 1


async def test_a_client_that_leaves_in_its_body_is_no_error_of_ours():
    async with serving() as client:
        assert await post_and_leave(client.app, b'{"ser', whole=False) == 499


async def post_and_leave(app, body, *, whole=True):
    """Post by hand, and close the connection after the body; returns the status nobody sees."""
    messages = [
        {"type": "http.request", "body": body, "more_body": not whole},
        {"type": "http.disconnect"},
    ]
    statuses = []

    async def receive():
        return messages.pop(0)

    async def send(message):
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/v1/forecast",
        "raw_path": b"/v1/forecast",
        "root_path": "",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1),
        "server": ("test", 80),
    }
    await app(scope, receive, send)
    return statuses[0]


async def test_what_was_done_is_counted():
    async with serving() as client:
        await client.post("/v1/forecast", forecast_request(series=[series(), series()]))
        assert await client.metric("rancast_forecasts_total", rung="full") == 2
        for stage in ("decode", "window", "queue", "infer", "encode"):
            assert await client.metric("rancast_stage_duration_seconds_count", stage=stage) == 1
        assert await client.metric("rancast_batch_size_sum") == 2


async def test_a_large_answer_to_a_small_request_is_not_written_on_the_event_loop(monkeypatch):
    writers = []
    write = answers.forecast_answer

    def spy(*arguments, **named):
        writers.append(threading.current_thread())
        return write(*arguments, **named)

    spied = AnswerForm("application/json", spy)
    monkeypatch.setitem(answer_forms._FORMS, "application/json", spied)
    levels = [0.05 + 0.009 * i for i in range(100)]
    async with serving() as client:
        small = await client.post("/v1/forecast", forecast_request())
        large = await client.post("/v1/forecast", forecast_request(horizon=48, quantiles=levels))
    assert small.status_code == large.status_code == 200
    assert [thread is threading.current_thread() for thread in writers] == [True, False]


@pytest.mark.parametrize("path", ["/v1/forecast", "/v1/observations"])
async def test_large_bodies_beyond_the_room_are_refused_until_one_is_answered(path):
    settings = Settings(max_body_bytes=400_000)
    body = forecast_request(series=[series(kpis={"RRU.PrbTotDl": [None] * 60_000})])
    if path == "/v1/observations":
        del body["horizon"]
    async with serving(settings) as client:
        with client.services.room.visit() as other:
            other.grow(600_000)
            refused = await client.post(path, body)
        answered = await client.post(path, body)
        assert client.services.room.taken_bytes == 0
    problem(refused, 429)
    assert refused.headers["retry-after"] == "1"
    assert answered.status_code == 200
