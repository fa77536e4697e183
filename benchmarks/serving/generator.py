"""The load generator: offers requests from a process of its own, pinned to a core of its own.

Open loop: arrivals are planned before the run, and are sent when they are due whatever the server
does, so that a slow answer does not slow the offer (no coordinated omission). Closed loop: so many
clients, each of which sends as soon as it has its answer.

What is recorded is the instant that a request is handed to the socket; how far that lies behind the
plan is the generator's own lag, and shows whether it was the bottleneck.

Axis legend: n requests.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing import get_context
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.serving.http_client import LOST, Connection, Reply, connect

RUNGS = ("full", "short", "baseline")
NO_RUNG = -1
_RUNG_MARK = b'"rung":"'
_LEAD_S = 0.05
_LEAVES_EVERY = 20


@dataclass(frozen=True)
class OpenLoad:
    """Requests at planned instants.

    Attributes:
        port: Of the server.
        requests: Their bytes, taken in turn.
        planned_s: float64 (n,), ascending, from the begin of the run.
        connections: Opened beforehand; where all are taken, more are opened.
        patience_s: How long is waited for answers after the last request.
    """

    port: int
    requests: Sequence[bytes]
    planned_s: NDArray[np.float64]
    connections: int = 128
    patience_s: float = 5.0


@dataclass(frozen=True)
class ClosedLoad:
    """Clients that send as soon as they have their answer.

    Attributes:
        port: Of the server.
        requests: Their bytes, taken in turn.
        clients: How many.
        seconds: After which no more requests are sent.
        most_requests: After which no more are sent either, None for any number.
        leave_after_s: Every twentieth client closes its connection so long after its request, and
            comes back with a new one; None: all wait for their answers.
    """

    port: int
    requests: Sequence[bytes]
    clients: int
    seconds: float
    most_requests: int | None = None
    leave_after_s: float | None = None


@dataclass(frozen=True)
class Record:
    """What became of each request, in the order in which they were planned.

    Attributes:
        planned_s: float64 (n,), when it should have been sent; in a closed loop, when it was.
        sent_s: float64 (n,), when it was handed to the socket; NaN where it never was.
        done_s: float64 (n,), when its answer was whole; NaN where it never was.
        status: int16 (n,), HTTP status, 0 where the answer was lost.
        rung: int8 (n,), of the first forecast, as an index of `RUNGS`; -1 where there is none.
    """

    planned_s: NDArray[np.float64]
    sent_s: NDArray[np.float64]
    done_s: NDArray[np.float64]
    status: NDArray[np.int16]
    rung: NDArray[np.int8]

    @property
    def latency_s(self) -> NDArray[np.float64]:
        """Seconds from the socket to the whole answer, float64 (n,)."""
        return self.done_s - self.sent_s

    @property
    def lag_s(self) -> NDArray[np.float64]:
        """How far the generator was behind its plan, float64 (n,)."""
        return self.sent_s - self.planned_s


class _Book:
    """Writes a record while the run goes on; plain lists, which are quicker than arrays here."""

    def __init__(self) -> None:
        self.planned_s: list[float] = []
        self.sent_s: list[float] = []
        self.done_s: list[float] = []
        self.status: list[int] = []
        self.rung: list[int] = []

    def open(self, planned_s: float) -> int:
        """A request is planned; returns its number."""
        self.planned_s.append(planned_s)
        self.sent_s.append(np.nan)
        self.done_s.append(np.nan)
        self.status.append(LOST)
        self.rung.append(NO_RUNG)
        return len(self.status) - 1

    def close(self, number: int, reply: Reply) -> None:
        """Its answer is there, or lost."""
        self.sent_s[number] = reply.sent_s
        self.status[number] = reply.status
        if reply.status != LOST:
            self.done_s[number] = reply.done_s
            self.rung[number] = rung_of(reply.body)

    def record(self, start_s: float) -> Record:
        """All of it, counted from the begin of the run."""
        return Record(
            planned_s=np.array(self.planned_s) - start_s,
            sent_s=np.array(self.sent_s) - start_s,
            done_s=np.array(self.done_s) - start_s,
            status=np.array(self.status, dtype=np.int16),
            rung=np.array(self.rung, dtype=np.int8),
        )


def rung_of(body: bytes) -> int:
    """The rung that an answer names first, as an index of `RUNGS`; -1 where it names none."""
    at = body.find(_RUNG_MARK)
    if at < 0:
        return NO_RUNG
    begin = at + len(_RUNG_MARK)
    name = body[begin : body.find(b'"', begin)].decode("ascii", errors="replace")
    return RUNGS.index(name) if name in RUNGS else NO_RUNG


class _Pool:
    """Connections of an open load; a request that finds none free waits for a new one."""

    def __init__(self, load: OpenLoad, book: _Book) -> None:
        self._load = load
        self._book = book
        self._idle: list[Connection] = []
        self._waiting: deque[int] = deque()
        self._opening: set[asyncio.Task[None]] = set()
        self._all: set[Connection] = set()
        self.under_way = 0

    async def open(self) -> None:
        """Open those that are wanted beforehand."""
        await asyncio.gather(*(self._connect() for _ in range(self._load.connections)))

    def send(self, number: int) -> None:
        """Send a request now, or as soon as there is a connection."""
        self.under_way += 1
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                self._send(connection, number)
                return
        self._waiting.append(number)
        opening = asyncio.create_task(self._connect())
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)

    def close(self) -> None:
        """Close all of them."""
        for connection in self._all:
            connection.close()

    async def _connect(self) -> None:
        try:
            connection = await connect(self._load.port)
        except OSError:
            if self._waiting:  # refused by the machine: the request is lost
                self._waiting.popleft()
                self.under_way -= 1
            return
        self._all.add(connection)
        self._free(connection)

    def _send(self, connection: Connection, number: int) -> None:
        requests = self._load.requests

        def on_reply(connection: Connection, reply: Reply) -> None:
            self._book.close(number, reply)
            self.under_way -= 1
            if connection.is_open:
                self._free(connection)
            else:
                self._all.discard(connection)

        connection.send(requests[number % len(requests)], on_reply)

    def _free(self, connection: Connection) -> None:
        if self._waiting:
            self._send(connection, self._waiting.popleft())
        else:
            self._idle.append(connection)


async def _offer_open(load: OpenLoad) -> Record:
    book = _Book()
    pool = _Pool(load, book)
    await pool.open()
    start_s = time.perf_counter() + _LEAD_S
    due_s = (load.planned_s + start_s).tolist()
    for instant_s in due_s:
        book.open(instant_s)
    number, clock = 0, time.perf_counter
    # It has a core of its own and never sleeps: timers of event loops are a millisecond coarse.
    while number < len(due_s):
        now_s = clock()
        while number < len(due_s) and due_s[number] <= now_s:
            pool.send(number)
            number += 1
        await asyncio.sleep(0)
    end_s = clock() + load.patience_s
    while pool.under_way and clock() < end_s:
        await asyncio.sleep(0.001)
    record = book.record(start_s)
    pool.close()
    return record


async def _offer_closed(load: ClosedLoad) -> Record:
    book = _Book()
    start_s = time.perf_counter()
    clients = [_Client(load, book, start_s + load.seconds) for _ in range(load.clients)]
    await asyncio.gather(*(client.run() for client in clients))
    return book.record(start_s)


class _Client:
    """One client of a closed load; it comes back where its connection was closed."""

    def __init__(self, load: ClosedLoad, book: _Book, end_s: float) -> None:
        self._load = load
        self._book = book
        self._end_s = end_s
        self._left = asyncio.Event()

    async def run(self) -> None:
        """Send until it is time to stop."""
        while not self._is_over():
            self._left.clear()
            connection = await connect(self._load.port)
            self._send(connection)
            await self._left.wait()
            connection.close()

    def _is_over(self) -> bool:
        most = self._load.most_requests
        is_enough = most is not None and len(self._book.status) >= most
        return is_enough or time.perf_counter() >= self._end_s

    def _send(self, connection: Connection) -> None:
        if self._is_over() or not connection.is_open:
            self._left.set()
            return
        load, book = self._load, self._book
        number = book.open(time.perf_counter())

        def on_reply(connection: Connection, reply: Reply) -> None:
            book.close(number, reply)
            self._send(connection)

        connection.send(load.requests[number % len(load.requests)], on_reply)
        if load.leave_after_s is not None and number % _LEAVES_EVERY == 0:
            asyncio.get_running_loop().call_later(load.leave_after_s, connection.abort)


def offer(load: OpenLoad | ClosedLoad) -> Record:
    """Offer a load, in this process; blocks until it is answered."""
    work = _offer_open(load) if isinstance(load, OpenLoad) else _offer_closed(load)
    gc.collect()
    gc.disable()  # a pause of the generator would be taken for one of the server
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(_typed(work))
    finally:
        gc.enable()


def _typed(work: Coroutine[Any, Any, Record]) -> Coroutine[Any, Any, Record]:
    return work


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The event loop that the server uses as well, where it is installed."""
    if find_spec("uvloop") is None:
        return None
    import uvloop

    return uvloop.new_event_loop


class Generator:
    """A process that offers loads, one after the other; a context manager.

    Args:
        core: What it is pinned to.
    """

    def __init__(self, core: int) -> None:
        self._process = ProcessPoolExecutor(
            1, mp_context=get_context("spawn"), initializer=_pin, initargs=(core,)
        )

    def __enter__(self) -> Generator:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.shutdown()

    def offer(self, load: OpenLoad | ClosedLoad) -> Record:
        """What became of a load."""
        return self._process.submit(offer, load).result()


def _pin(core: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
