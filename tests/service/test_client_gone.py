"""Clients close their connections when it suits them; nothing of what they began may stay."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack

import httpx
import pytest

from service.room import SMALL_BYTES
from service.settings import Settings
from tests.service.fakes import RepeatLast, forecast_request, series
from tests.service.live import Live, live

CLIENTS = 8


def request_of(body: bytes, *, length: int | None = None, coding: str = "identity") -> bytes:
    head = (
        "POST /v1/forecast HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        f"content-encoding: {coding}\r\ncontent-length: {length or len(body)}\r\n\r\n"
    )
    return head.encode() + body


def text_of(cell: str) -> bytes:
    return json.dumps(forecast_request(series=[series(cell=cell)], budget_ms=30_000)).encode()


def gone(one: Live) -> float:
    labels = {"route": "/v1/forecast", "reason": "client_gone"}
    return one.metric("rancast_requests_rejected_total", **labels)


async def tasks() -> int:
    return len(asyncio.all_tasks())


def ask(one: Live) -> int:
    content = text_of("another")
    headers = {"content-type": "application/json"}
    return httpx.post(
        f"{one.url}/v1/forecast", content=content, headers=headers, timeout=60
    ).status_code


def test_requests_whose_clients_leave_the_queue_are_not_worked_on_and_leave_nothing():
    model = RepeatLast()
    # One permit for each, so that one that is not given back shows.
    settings = Settings(profile="non-rt", queue_limit=CLIENTS + 1)
    with live(settings, model) as one, one.connect() as holder:
        assert ask(one) == 200
        engine = one.services.require().engine
        before = one.run(tasks())
        model.forget_warm_up()
        model.gate.clear()
        holder.sendall(request_of(text_of("holder")))
        assert model.entered.acquire(timeout=30)
        with ExitStack() as stack:
            for number in range(CLIENTS):
                leaver = stack.enter_context(one.connect())
                leaver.sendall(request_of(text_of(f"leaver-{number}")))
            one.until(lambda: one.metric("rancast_queue_depth") == CLIENTS + 1)
            refused = ask(one)
        assert refused == 429
        one.until(lambda: gone(one) == CLIENTS)
        assert one.metric("rancast_queue_depth") == 1
        model.gate.set()
        assert b" 200 " in holder.recv(65_536)
        assert ask(one) == 200
        assert [cells for cells, *_ in model.calls] == [["holder"], ["another"]]
        assert not any(engine._jobs.values())
        holder.close()
        one.until(lambda: len(asyncio.all_tasks()) <= before)


@pytest.mark.parametrize("coding", ["identity", "gzip", "zstd"])
def test_a_body_whose_client_leaves_gives_its_room_back(coding):
    half = b" " * (4 * SMALL_BYTES)
    with live(Settings(profile="non-rt")) as one:
        before = one.run(tasks())
        with ExitStack() as stack:
            for _ in range(CLIENTS):
                leaver = stack.enter_context(one.connect())
                leaver.sendall(request_of(half, length=2 * len(half), coding=coding))
            one.until(lambda: one.services.room.taken_bytes == CLIENTS * len(half))
        one.until(lambda: gone(one) == CLIENTS)
        assert one.services.room.taken_bytes == 0
        one.until(lambda: len(asyncio.all_tasks()) <= before)
        assert ask(one) == 200
