"""The load generator offers what was planned, and records what became of it."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from benchmarks.serving.generator import (
    NO_RUNG,
    RUNGS,
    ClosedLoad,
    Generator,
    OpenLoad,
    offer,
    rung_of,
)
from benchmarks.serving.http_client import LOST, build_request
from benchmarks.serving.processes import Cores, free_port
from tests.benchmarks.serving.small_server import Small, response, small_server

REQUESTS = tuple(build_request(f"/{number}") for number in range(3))


def at_once(number: int) -> np.ndarray:
    return np.zeros(number)


def test_slow_answers_do_not_slow_the_offer() -> None:
    """A client that waited for its answer before it sent again would never get one here."""
    number, all_came = 40, asyncio.Event()

    async def answer(small: Small, _: bytes, __: bytes) -> bytes:
        if len(small.heads) == number:
            all_came.set()
        await all_came.wait()
        return response()

    with small_server(answer) as small:
        load = OpenLoad(small.port, REQUESTS, np.linspace(0, 0.05, number), connections=4)
        record = offer(load)
    assert (record.status == 200).all()
    assert small.most_under_way == number
    # The first answer came after the last request was sent.
    assert np.nanmin(record.done_s) >= np.nanmax(record.sent_s)


def test_nothing_is_sent_before_it_is_due() -> None:
    with small_server() as small:
        record = offer(OpenLoad(small.port, REQUESTS, np.array([0.0, 0.02, 0.05]), connections=2))
    assert (record.lag_s >= 0).all()
    assert (record.latency_s > 0).all()
    assert record.planned_s == pytest.approx([0.0, 0.02, 0.05])


def test_requests_are_taken_in_turn() -> None:
    with small_server() as small:
        offer(OpenLoad(small.port, REQUESTS, np.linspace(0, 0.1, 7), connections=1))
    paths = [head.split()[1].decode() for head in small.heads]
    assert sorted(paths) == ["/0", "/0", "/0", "/1", "/1", "/2", "/2"]


def test_lost_answers_are_recorded_as_lost() -> None:
    async def answer(small: Small, _: bytes, __: bytes) -> bytes | None:
        return None if len(small.heads) % 2 else response()

    with small_server(answer) as small:
        record = offer(OpenLoad(small.port, REQUESTS, at_once(6), connections=1))
    assert (record.status == LOST).sum() == 3
    assert np.isnan(record.done_s[record.status == LOST]).all()


def test_a_server_that_never_answers_is_not_waited_for_for_ever() -> None:
    async def answer(_: Small, __: bytes, ___: bytes) -> bytes:
        await asyncio.Event().wait()
        raise AssertionError

    with small_server(answer) as small:
        load = OpenLoad(small.port, REQUESTS, at_once(3), connections=1, patience_s=0.05)
        record = offer(load)
    assert (record.status == LOST).all()


def test_nobody_there_loses_all() -> None:
    record = offer(OpenLoad(free_port(), REQUESTS, at_once(4), connections=2))
    assert (record.status == LOST).all()


def test_a_closed_load_keeps_so_many_requests_under_way_and_no_more() -> None:
    clients, all_came = 5, asyncio.Event()

    async def answer(small: Small, _: bytes, __: bytes) -> bytes:
        if len(small.heads) == clients:
            all_came.set()
        await all_came.wait()
        return response()

    with small_server(answer) as small:
        record = offer(ClosedLoad(small.port, REQUESTS, clients, 30, most_requests=50))
    assert small.most_under_way == clients
    assert len(record.status) == len(small.heads) == 50
    assert (record.status == 200).all()


def test_clients_that_leave_come_back() -> None:
    async def answer(small: Small, _: bytes, __: bytes) -> bytes:
        if len(small.heads) == 1:
            await asyncio.Event().wait()
        return response()

    with small_server(answer) as small:
        load = ClosedLoad(small.port, REQUESTS, 1, 30, most_requests=5, leave_after_s=0.01)
        record = offer(load)
    assert record.status.tolist() == [LOST, 200, 200, 200, 200]
    assert small.connections == 2


def test_a_closed_load_of_no_time_asks_nothing() -> None:
    with small_server() as small:
        assert len(offer(ClosedLoad(small.port, REQUESTS, 2, 0.0)).status) == 0
    assert small.connections == 0


@pytest.mark.parametrize("index", range(len(RUNGS)))
def test_the_rung_of_an_answer_is_read(index: int) -> None:
    assert rung_of(b'{"forecasts":[{"rung":"%s"}]}' % RUNGS[index].encode()) == index


@pytest.mark.parametrize("body", [b"", b"{}", b'{"rung":"new"}', b'{"rung":"'])
def test_other_answers_have_no_rung(body: bytes) -> None:
    assert rung_of(body) == NO_RUNG


def test_the_generator_is_a_process_of_its_own() -> None:
    with small_server() as small, Generator(Cores.of_this_machine().generator) as generator:
        record = generator.offer(OpenLoad(small.port, REQUESTS, at_once(5), connections=2))
    assert (record.status == 200).all()
