"""An hour's worth of requests, one after the other as fast as they go: what does the service keep?

Ten thousand cells that report every quarter hour are eleven forecasts a second, 40,000 an hour.
They come as JSON and as Arrow streams, of stored cells and with histories of their own, together
with what cannot be answered: budgets that nobody can keep, malformed bodies, unknown cells, and
clients that go away in the middle. After a warm-up, in which caches, the store and the forecasts
that are kept for their accuracy fill, nothing may grow any more.
"""

from __future__ import annotations

import os
import re
import signal
import statistics
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import numpy as np

from benchmarks.harness import Result
from benchmarks.inference.shapes import CONTEXT_STEPS
from benchmarks.serving.bench import Bench
from benchmarks.serving.bodies import (
    bulk_arrow_request,
    cells,
    demands,
    forecast_requests,
    json_body,
)
from benchmarks.serving.generator import ClosedLoad, Record
from benchmarks.serving.http_client import build_request
from benchmarks.serving.processes import Server, our_service, python_module, running
from kpi.window import KpiWindow
from service.codecs.arrow_stream import ARROW_MEDIA_TYPE

REQUESTS_AN_HOUR = 40_000
QUICK_REQUESTS = 4_000
CLIENTS = 8
MOST_GROWTH_BYTES = 2 * 2**20
"""Resident memory moves by more than what is asked for: the allocator's pages come and go."""

MOST_POOL_THREADS = min(32, (os.cpu_count() or 1) + 4)
"""Of `concurrent.futures`, where nothing else is asked for."""

_STORED = 32
_WARM_UP_SHARE = 0.4
_SAMPLES = 12
_EDGE = 3
_COUNT = re.compile(r"soak tasks=(\d+) pool=(\d+)")
_COUNT_S = 10.0
_LEAVE_AFTER_S = 0.002
_LOOKS, _LOOK_S = 5, 0.05


@dataclass(frozen=True)
class Kept:
    """What the service holds at one moment.

    Attributes:
        memory_bytes: Resident.
        tasks: Of the event loop.
        threads: Of the process, without those of the pool.
        descriptors: Open files.
        pool: Threads of the event loop's own pool, which starts them as they are needed, up to a
            number that the machine's cores decide.
    """

    memory_bytes: int
    tasks: int
    threads: int
    descriptors: int
    pool: int = 0


def measure_soak(bench: Bench) -> Iterator[Result]:
    """Growth over an hour's worth of requests."""
    total = QUICK_REQUESTS if bench.quick else REQUESTS_AN_HOUR
    windows = cells(_STORED, CONTEXT_STEPS)
    # What is kept on purpose fills in the warm-up.
    environment = our_service(accuracy_bytes=str(2**20), max_cells="64")
    with running(
        python_module("benchmarks.serving.soaked_service"),
        bench.cores.server,
        ready_path="/readyz",
        environment=environment,
    ) as server:
        requests = soak_requests(windows)
        _store(server, windows)
        bench.say(f"soak: {total} requests")
        _run(bench, server, requests, round(total * _WARM_UP_SHARE))
        observed, statuses = [observe(server)], []
        begun_s = time.monotonic()
        share = round(total * (1 - _WARM_UP_SHARE) / _SAMPLES)
        for _ in range(_SAMPLES):
            statuses.append(_run(bench, server, requests, share).status)
            observed.append(observe(server))
        spent_s = time.monotonic() - begun_s
    yield soak_row(
        observed,
        np.concatenate(statuses),
        requests=total,
        requests_per_s=share * _SAMPLES / spent_s,
    )


def soak_requests(windows: Sequence[KpiWindow]) -> list[bytes]:
    """A mix of all there is, each answered by what the service is for or by a refusal."""
    lasting = demands()
    impossible = demands(budget_ms="1")
    stored = [
        build_request(f"/v1/cells/{quote(window.cell, safe='')}/forecast?horizon=24", method="GET")
        for window in windows[:8]
    ]
    sound = forecast_requests(windows[:8], **lasting)
    mixed = [request for pair in zip(sound, stored, strict=True) for request in pair]
    mixed += forecast_requests(windows[8:12], **demands(rung="baseline"))
    mixed += [bulk_arrow_request(windows[12:16], **lasting)] * 2
    mixed += forecast_requests(windows[16:18], **impossible)
    body = json_body(windows[:1])
    mixed += [
        build_request("/v1/forecast", body[: len(body) // 2]),
        build_request("/v1/forecast", body.replace(b"horizon", b"horizont")),
        build_request("/v1/forecast", b"\x00\x01", content_type=ARROW_MEDIA_TYPE),
        build_request("/v1/cells/nobody/forecast", method="GET"),
        build_request("/v1/nowhere", method="GET"),
        build_request("/v1/observations", json_body(windows[:1]).replace(b',"horizon":24', b"")),
    ]
    # In an order that mixes them, the same at every call.
    order = np.random.default_rng(7).permutation(len(mixed))
    return [mixed[index] for index in order]


def observe(server: Server) -> Kept:
    """What the service holds once the connections of its last clients are gone."""
    seen = []
    for _ in range(_LOOKS):
        tasks, pool = _inside(server)
        seen.append((tasks, server.threads() - pool, pool, server.descriptors()))
        time.sleep(_LOOK_S)
    tasks, threads, pool, descriptors = (min(figure) for figure in zip(*seen, strict=True))
    return Kept(server.memory_bytes(), tasks, threads, descriptors, pool)


def growth(observed: Sequence[Kept], figure: str) -> float:
    """How much more there is of something: median of the last moments less that of the first."""
    values = [getattr(one, figure) for one in observed]
    edge = min(_EDGE, max(1, len(values) // 2))
    return float(statistics.median(values[-edge:]) - statistics.median(values[:edge]))


def soak_row(observed: Sequence[Kept], statuses: Any, **detail: Any) -> Result:
    """The figure: growth of memory, met where nothing else grew either.

    Args:
        observed: After the warm-up, and then from time to time.
        statuses: Of all requests.
        detail: Of the figure.
    """
    others = {name: growth(observed, name) for name in ("tasks", "threads", "descriptors")}
    grown_bytes = growth(observed, "memory_bytes")
    failures = int((np.asarray(statuses) >= 500).sum() - (np.asarray(statuses) == 504).sum())
    is_bounded = max(one.pool for one in observed) <= MOST_POOL_THREADS
    is_steady = grown_bytes <= MOST_GROWTH_BYTES and max(others.values()) <= 0
    met = is_steady and is_bounded and not failures
    kinds, counts = np.unique(np.asarray(statuses), return_counts=True)
    return Result(
        "serving.soak",
        grown_bytes / 2**20,
        "MiB",
        "",
        MOST_GROWTH_BYTES / 2**20,
        met,
        {
            **{f"{name}_growth": grown for name, grown in others.items()},
            "server_errors": failures,
            "memory_mib": [round(one.memory_bytes / 2**20, 1) for one in observed],
            "tasks": [one.tasks for one in observed],
            "threads": [one.threads for one in observed],
            "descriptors": [one.descriptors for one in observed],
            "pool_threads": [one.pool for one in observed],
            "statuses": {str(k): int(n) for k, n in zip(kinds, counts, strict=True)},
            **detail,
        },
    )


def _run(bench: Bench, server: Server, requests: Sequence[bytes], number: int) -> Record:
    load = ClosedLoad(
        server.port,
        requests,
        CLIENTS,
        seconds=3_600.0,
        most_requests=number,
        leave_after_s=_LEAVE_AFTER_S,
    )
    return bench.generator.offer(load)


def _store(server: Server, windows: Sequence[KpiWindow]) -> None:
    body = json_body(windows)
    options = body.index(b',"horizon"')
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.port}/v1/observations",
        body[:options] + b"}",
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        answer.read()


def _inside(server: Server) -> tuple[int, int]:
    """Tasks, and threads of the pool, as the process itself counts them."""
    before = len(_COUNT.findall(server.log.read_text(errors="replace")))
    os.kill(server.pid, signal.SIGUSR1)
    ends_s = time.monotonic() + _COUNT_S
    while True:
        # A request wakes the event loop, which is where signals are looked at.
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/healthz") as answer:
            answer.read()
        found = _COUNT.findall(server.log.read_text(errors="replace"))
        if len(found) > before:
            tasks, pool = found[-1]
            return int(tasks), int(pool)
        if time.monotonic() > ends_s:
            raise TimeoutError(f"expected the service to count its tasks in {_COUNT_S:g} s")
