"""Whatever a body holds, it is read or refused; nothing else may come out of the decoder."""

import asyncio
import gzip
import json
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from fastapi import Request
from hypothesis import example, given
from hypothesis import strategies as st

from service.bodies import JSON_MEDIA_TYPE as JSON
from service.bodies import _decompressed, _read_bounded, read_decoded
from service.codecs.json_requests import decode_histories
from service.errors import (
    ClientGoneError,
    InvalidRequestError,
    MalformedBodyError,
    RequestError,
    TooLargeError,
)
from service.room import SMALL_BYTES, BodyRoom
from service.schemas import ForecastRequest
from service.series import SeriesLimits, to_windows
from service.timing import SCOPE_KEY, RequestTiming
from tests.service.fakes import forecast_request, series, serving, small_catalogue

LIMITS = SeriesLimits(max_series=10, max_kpis=3)

ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["2026-11-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59Z"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


def read(body: bytes) -> None:
    request = decode_histories(body, ForecastRequest)
    to_windows(request.series, LIMITS, small_catalogue(), "UTC")


@given(st.binary(max_size=64))
@example(b'"\\ud800"')
@example(b"[" * 10_000)
@example(b"\xef\xbb\xbf{}")
def test_any_bytes_are_read_or_refused(body):
    with suppress(RequestError):
        read(body)


@given(ANY_JSON)
def test_any_json_is_read_or_refused(body):
    with suppress(MalformedBodyError, InvalidRequestError):
        read(json.dumps(body).encode())


@given(st.data())
def test_a_request_with_any_value_in_any_field_is_read_or_refused(data):
    body: dict[str, Any] = forecast_request(series=[series(time_zone="UTC", events=[])])
    one = data.draw(st.sampled_from([body, body["series"][0], body["series"][0]["kpis"]]))
    field = data.draw(st.sampled_from(sorted(one)))
    one[field] = data.draw(ANY_JSON)
    with suppress(MalformedBodyError, InvalidRequestError):
        read(json.dumps(body).encode())


@contextmanager
def counting_turns() -> Iterator[Callable[[], int]]:
    """Gives how often another thread has got the interpreter since."""
    turns = 0
    going, ended = threading.Event(), threading.Event()

    def take_turns() -> None:
        nonlocal turns
        while not ended.is_set():
            turns += 1
            going.set()
            time.sleep(0)  # gives the interpreter back

    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=take_turns)
    thread.start()
    try:
        assert going.wait(30)
        yield lambda: turns
    finally:
        ended.set()
        thread.join()
        sys.setswitchinterval(interval_s)


def test_other_threads_get_their_turn_while_pydantic_decodes_a_large_body(monkeypatch):
    monkeypatch.setattr("service.codecs.json_requests.cut_samples", lambda *_: None)
    many = [series(cell=f"c{i}", kpis={"A": [0.5] * 4000}) for i in range(200)]
    body = json.dumps(forecast_request(series=many)).encode()
    with counting_turns() as turns:
        before = turns()
        decode_histories(body, ForecastRequest)
        # One a series; the decoder alone would give one or two in all.
        assert turns() - before > 50


@pytest.mark.anyio
async def test_a_client_that_falls_silent_in_its_body_is_let_go_and_its_room_is_free(monkeypatch):
    monkeypatch.setattr("service.bodies.STALLED_S", 0.001)
    room = BodyRoom(10 * SMALL_BYTES)
    chunks = [{"type": "http.request", "body": b" " * 2 * SMALL_BYTES, "more_body": True}]

    async def receive() -> dict[str, Any]:
        return chunks.pop() if chunks else await asyncio.Future()

    request = Request({"type": "http", "headers": []}, receive)
    with pytest.raises(ClientGoneError, match="nothing for"), room.visit() as visit:
        await _read_bounded(request, 10 * SMALL_BYTES, visit)
    assert room.taken_bytes == 0


@pytest.mark.anyio
async def test_a_client_that_drips_its_body_is_let_go():
    room = BodyRoom(10 * SMALL_BYTES)

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b" ", "more_body": True}

    request = Request({"type": "http", "headers": []}, receive)
    with pytest.raises(ClientGoneError, match="more than"), room.visit() as visit:
        await _read_bounded(request, 1 << 40, visit, 0.01)


@pytest.mark.anyio
@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_the_parts_of_a_large_body_are_joined_off_the_event_loop(monkeypatch, encoding):
    body = random.Random(0).randbytes(4 * SMALL_BYTES)
    sent = body if encoding == "identity" else gzip.compress(body)
    parts = [sent[at : at + 65536] for at in range(0, len(sent), 65536)]
    handed: list[int] = []
    kept = asyncio.to_thread

    async def to_thread(work: Any, *arguments: Any) -> Any:
        handed.extend(len(one) for one in arguments if isinstance(one, list))
        return await kept(work, *arguments)

    monkeypatch.setattr("service.bodies.asyncio.to_thread", to_thread)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

    number = len(parts)
    headers = [(b"content-encoding", encoding.encode())]
    async with serving() as client:
        scope: dict[str, Any] = {"type": "http", "headers": headers}
        scope[SCOPE_KEY] = RequestTiming(0.0, client.clock, client.services.metrics)
        with client.services.room.visit() as visit:
            request = Request(scope, receive)
            assert await read_decoded(request, client.services, visit, bytes) == body
            assert visit.bytes >= len(body)
    # All parts of what was sent, and all pieces of what was decompressed, are joined by threads.
    assert handed == ([number] if encoding == "identity" else [number, 1])


@pytest.mark.anyio
async def test_a_small_body_that_unpacks_into_a_larger_one_takes_its_room():
    sent = gzip.compress(b" " * (SMALL_BYTES // 2))

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": sent, "more_body": False}

    async with serving() as client:
        scope: dict[str, Any] = {"type": "http", "headers": [(b"content-encoding", b"gzip")]}
        scope[SCOPE_KEY] = RequestTiming(0.0, client.clock, client.services.metrics)
        with client.services.room.visit() as visit:
            await read_decoded(Request(scope, receive), client.services, visit, bytes)
            assert client.services.room.taken_bytes == SMALL_BYTES // 2 + len(sent)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("body", "is_aside"),
    [
        (json.dumps(forecast_request()).encode(), False),
        (json.dumps(forecast_request(x=[{}] * 3000)).encode(), True),
        (json.dumps(forecast_request()).encode() + b" " * 100_000, True),
    ],
    ids=["small", "many lists", "long"],
)
async def test_a_body_that_may_take_long_is_decoded_beside_the_loop(monkeypatch, body, is_aside):
    threads = []

    def spy(text: bytes, model: Any) -> Any:
        threads.append(threading.current_thread())
        return decode_histories(text, model)

    monkeypatch.setattr("service.codecs.requests.decode_histories", spy)
    async with serving() as client:
        await client.http.post("/v1/forecast", content=body, headers={"content-type": JSON})
    assert [one is not threading.current_thread() for one in threads] == [is_aside]


@pytest.mark.anyio
@pytest.mark.parametrize("streams", [1, 2])
async def test_a_second_stream_is_decompressed_beside_the_loop(monkeypatch, streams):
    aside = []
    to_thread = asyncio.to_thread

    async def spy(function: Any, *arguments: Any) -> Any:
        aside.append(function)
        return await to_thread(function, *arguments)

    monkeypatch.setattr("service.bodies.asyncio.to_thread", spy)
    body = b"".join(gzip.compress(part) for part in (b"{}", b" ")[:streams])
    with BodyRoom(10 * SMALL_BYTES).visit() as visit:
        unpacked = b"".join(await _decompressed("gzip", [body], 1000, visit))
    assert unpacked == b"{} "[: 1 + streams]
    assert bool(aside) == (streams > 1)


@pytest.mark.anyio
async def test_a_length_of_thousands_of_digits_is_too_large():
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    request = Request({"type": "http", "headers": [(b"content-length", b"9" * 5000)]}, receive)
    with pytest.raises(TooLargeError), BodyRoom(SMALL_BYTES).visit() as visit:
        await _read_bounded(request, SMALL_BYTES, visit)
