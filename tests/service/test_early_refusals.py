"""A request whose budget cannot be kept is answered by its head alone, as any other would be."""

from __future__ import annotations

import json
import socket

import pytest

from service.engine.cost import Effort, Measured
from service.settings import Settings
from tests.service.fakes import forecast_request
from tests.service.live import Live, live
from tests.service.test_held_connections import wait_until_closed

BODY = json.dumps(forecast_request()).encode()


def head(path: str = "/v1/forecast", **headers: str) -> bytes:
    fields = {
        "Host": "x",
        "Content-Type": "application/json",
        "X-Latency-Budget-Ms": "100",
        "Content-Length": str(len(BODY)),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def read_answer(connection: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the next answer."""
    came = b""
    while b"\r\n\r\n" not in came:
        piece = connection.recv(65536)
        assert piece, "closed"
        came += piece
    top, _, body = came.partition(b"\r\n\r\n")
    first, *lines = top.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    while len(body) < int(headers["content-length"]):
        body += connection.recv(65536)
    return int(first.split()[1]), headers, body


def make_slow(one: Live) -> None:
    """Have it believe that a call takes a minute."""
    for model in one.services.require().models.served:
        for step in model.ladder.steps:
            line = [Measured(Effort(work, 1), 60.0) for work in (0.1, 1.0)]
            step.cost.start_from(line, step.cost._pace)


@pytest.fixture
def slow():
    with live(Settings(head_seconds=1)) as one:
        make_slow(one)
        yield one


def refused(one: Live) -> float:
    labels = {"route": "/v1/forecast", "profile": "near-rt"}
    registry = one.services.metrics._registry
    name = "rancast_request_duration_seconds_count"
    return registry.get_sample_value(name, labels) or 0.0


def test_the_head_alone_is_answered_before_the_body_comes(slow):
    with slow.connect() as connection:
        connection.sendall(head())
        status, headers, body = read_answer(connection)
        assert status == 429
        assert headers["content-type"] == "application/problem+json"
        assert int(headers["retry-after"]) >= 1
        problem = json.loads(body)
        assert problem["type"] == "urn:rancast:problem:budget"
        assert problem["instance"].endswith(headers["x-request-id"])
        assert refused(slow) == 1


def test_it_says_what_the_application_says(slow):
    answers = []
    # A trace is for the application to continue.
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    kinds: list[dict[str, str]] = [{}, {"traceparent": trace}]
    for more in kinds:
        with slow.connect() as connection:
            connection.sendall(head(X_Request_Id="mine", **more) + BODY)
            status, headers, body = read_answer(connection)
            kept = {name for name in headers if name not in ("traceparent", "server-timing")}
            answers.append((status, kept, {**json.loads(body), "detail": ""}))
    assert answers[0] == answers[1]


def test_the_body_is_passed_over_and_the_next_request_is_answered(slow):
    with slow.connect() as connection:
        for _ in range(3):
            connection.sendall(head())
            assert read_answer(connection)[0] == 429
            connection.sendall(BODY[:10])
            connection.sendall(BODY[10:])
        connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert read_answer(connection)[0] == 200


def test_requests_that_come_together_are_answered_in_their_order(slow):
    ask = b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"
    with slow.connect() as connection:
        connection.sendall(ask + head() + BODY + ask)
        assert [read_one(connection) for _ in range(3)] == [200, 429, 200]


def read_one(connection: socket.socket) -> int:
    """Status of the next answer, read byte by byte, because another may follow."""
    top = b""
    while not top.endswith(b"\r\n\r\n"):
        top += connection.recv(1)
    (length,) = (
        int(line.split(b":")[1])
        for line in top.lower().split(b"\r\n")
        if line.startswith(b"content-length")
    )
    left = length
    while left:
        left -= len(connection.recv(left))
    return int(top.split()[1])


def test_a_body_that_never_comes_ends_the_connection(slow):
    with slow.connect() as connection:
        connection.sendall(head())
        assert read_answer(connection)[0] == 429
        wait_until_closed(slow, "slow")
        assert connection.recv(1) == b""


@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        (head(X_Latency_Budget_Ms="never"), 422),
        (head(X_Minimum_Rung="best"), 422),
        (head(path="/v1/forecast?x=1"), 429),
        (head(Origin="http://x"), 429),
    ],
    ids=["no budget", "no rung", "query", "origin"],
)
def test_what_is_not_plain_is_left_to_the_application(slow, request_head, status):
    with slow.connect() as connection:
        connection.sendall(request_head + BODY)
        assert read_answer(connection)[0] == status


def test_what_fits_is_answered_as_ever():
    with live() as one, one.connect() as connection:
        for _ in range(2):
            connection.sendall(head(X_Latency_Budget_Ms="30000") + BODY)
            assert read_answer(connection)[0] == 200


def test_where_tokens_are_asked_for_the_door_comes_first(tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("reader read " + "t" * 40 + "\n")
    with live(Settings(token_file=tokens)) as one:
        make_slow(one)
        with one.connect() as connection:
            connection.sendall(head() + BODY)
            assert read_answer(connection)[0] == 401


def test_its_line_is_in_the_access_log(slow, caplog):
    caplog.set_level("INFO")
    with slow.connect() as connection:
        connection.sendall(head(X_Request_Id="mine") + BODY)
        assert read_answer(connection)[0] == 429
    lines = [json.loads(r.message) for r in caplog.records if r.name == "rancast.access"]
    (line,) = [line for line in lines if line["request_id"] == "mine"]
    assert (line["route"], line["status"], line["method"]) == ("/v1/forecast", 429, "POST")


@pytest.mark.parametrize("early", [True, False])
def test_a_refusal_is_counted_and_hides_no_late_answer_wherever_it_happens(slow, early):
    # A head that is not plain is left to the application, which refuses at its own door.
    headers = {} if early else {"Origin": "http://x"}
    with slow.connect() as connection:
        connection.sendall(head(**headers) + BODY)
        assert read_answer(connection)[0] == 429
    slow.until(lambda: refused(slow) == 1)
    labels = {"route": "/v1/forecast", "reason": "budget"}
    assert slow.metric("rancast_requests_rejected_total", **labels) == 1
    labels = {"route": "/v1/forecast", "profile": "near-rt"}
    assert slow.metric("rancast_request_duration_seconds_count", **labels) == 1
    # It is quick, and would look like an answer in time.
    assert slow.metric("rancast_latency_budget_used_ratio_count", **labels) == 0
