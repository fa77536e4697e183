import io
import json
import logging
import re

import pytest

from service.access_log import LOGGER_NAME, configure_access_log
from service.settings import Settings
from tests.service.fakes import RepeatLast, forecast_request, serving

pytestmark = pytest.mark.anyio

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SECRET = "0123456789abcdef-dashboard"


@pytest.fixture
def lines(request):
    """What the access log has written so far; the level is the test's parameter."""
    logger = logging.getLogger(LOGGER_NAME)
    kept = logger.handlers, logger.propagate, logger.level
    stream = io.StringIO()
    configure_access_log(getattr(request, "param", "info"), stream)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    logger.handlers, logger.propagate, logger.level = kept


async def test_a_request_is_one_line_of_json(lines):
    async with serving() as client:
        answer = await client.post(
            "/v1/forecast",
            forecast_request(),
            **{"X-Request-Id": "mine-1", "traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"},
        )
    (line,) = lines()
    sent = len(answer.request.content)
    assert line == {
        "ts": "2026-11-01T12:00:00.000Z",
        "method": "POST",
        "route": "/v1/forecast",
        "path": "/v1/forecast",
        "status": 200,
        "duration_ms": 0.0,
        "bytes_in": sent,
        "bytes_out": len(answer.content),
        "client": "127.0.0.1",
        "token": None,
        "request_id": "mine-1",
        "trace_id": TRACE,
    }


async def test_the_answer_carries_the_id_and_the_trace(lines):
    async with serving() as client:
        answer = await client.get("/v1/model", traceparent=f"00-{TRACE}-00f067aa0ba902b7-01")
    assert answer.headers["x-request-id"] == lines()[0]["request_id"]
    assert re.fullmatch(rf"00-{TRACE}-[0-9a-f]{{16}}-01", answer.headers["traceparent"])
    assert "00f067aa0ba902b7" not in answer.headers["traceparent"]


async def test_a_problem_names_the_request_that_it_answers():
    async with serving() as client:
        answer = await client.get("/v1/cells/none", **{"X-Request-Id": "mine-2"})
    assert answer.json()["instance"] == "urn:rancast:request:mine-2"
    assert "traceparent" not in answer.headers


async def test_a_bug_of_ours_carries_the_id_too(lines):
    async with serving(predictor=RepeatLast()) as client:
        client.services.running.models.default.card = "no card"  # type: ignore[union-attr]
        answer = await client.get("/v1/model", **{"X-Request-Id": "mine-3"})
    assert answer.status_code == 500
    assert answer.headers["x-request-id"] == "mine-3"
    assert answer.json()["instance"] == "urn:rancast:request:mine-3"
    (line,) = lines()
    assert (line["status"], line["route"]) == (500, "/v1/model")


async def test_the_route_is_its_template_and_the_path_is_the_one_that_came(lines):
    async with serving() as client:
        await client.get("/v1/cells/a%0A%22b?kpi=secret")
    (line,) = lines()
    assert line["route"] == "/v1/cells/{cell}"
    assert line["path"] == '/v1/cells/a\n"b'
    assert "secret" not in json.dumps(line)


async def test_probes_and_scrapes_are_not_logged_at_info(lines):
    async with serving() as client:
        for path in ("/healthz", "/readyz", "/metrics"):
            assert "x-request-id" in (await client.get(path)).headers
    assert lines() == []


@pytest.mark.parametrize("lines", ["debug"], indirect=True)
async def test_probes_are_logged_at_debug(lines):
    async with serving() as client:
        await client.get("/healthz")
    assert [line["path"] for line in lines()] == ["/healthz"]


async def test_the_access_log_can_be_switched_off(lines):
    async with serving(Settings(access_log=False)) as client:
        answer = await client.get("/v1/model")
    assert answer.headers["x-request-id"]
    assert lines() == []


async def test_a_line_names_the_token_and_never_holds_it(lines, tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"dashboard read {SECRET}\n")
    async with serving(Settings(token_file=path)) as client:
        await client.get("/v1/model", authorization=f"Bearer {SECRET}")
        await client.get("/v1/model", authorization=f"Bearer {SECRET}-wrong")
    known, unknown = lines()
    assert (known["token"], known["status"]) == ("dashboard", 200)
    assert (unknown["token"], unknown["status"]) == (None, 401)
    assert SECRET not in json.dumps([known, unknown])
