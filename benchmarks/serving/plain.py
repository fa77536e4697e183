"""Against plain FastAPI with pydantic models and inference in the handler.

With a predictor that costs nothing the ratio is that of all that is around the model; with the
shipped one it is what batching brings.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from benchmarks.harness import Result
from benchmarks.inference.shapes import CONTEXT_STEPS
from benchmarks.serving.bench import Bench
from benchmarks.serving.bodies import (
    bulk_arrow_request,
    bulk_json_request,
    cells,
    demands,
    forecast_requests,
)
from benchmarks.serving.processes import Server, free_port, our_service, python_module, running
from benchmarks.serving.turns import Contender, Length, Turn, alternate, medians, ratios

OPPONENT = "plain FastAPI and pydantic, one worker of uvicorn"
INLINE = "plain FastAPI, inference in the handler, the same compiled code"
OURS, THEIRS = "ours", "theirs"
JSON, ARROW = "ours, JSON", "ours, Arrow"

ONE_CELL_STEPS = 512
BULK_CELLS = 1_000
LEAST_ONE_CELL, LEAST_BULK_JSON, LEAST_BULK_ARROW = 2.5, 10.0, 100.0
LEAST_RPS, MOST_CPU, MOST_P50 = 1.6, 0.7, 1.1
CLIENTS = 8

_DIFFERENT = 64


def measure_overhead(bench: Bench) -> Iterator[Result]:
    """One cell, and a thousand, with a predictor that costs nothing."""
    rounds = 3 if bench.quick else 7
    one = cells(_DIFFERENT, ONE_CELL_STEPS, missing=True)
    many = cells(BULK_CELLS, ONE_CELL_STEPS, missing=True)
    with _trivial_service(bench) as ours, _plain(bench, "trivial") as theirs:
        bench.say("one cell, and a thousand: against plain FastAPI")
        turns = alternate(
            {
                OURS: Contender(ours, forecast_requests(one, **demands())),
                THEIRS: Contender(theirs, forecast_requests(one)),
            },
            Length(1, 0.5 if bench.quick else 1.0),
            rounds,
            bench.generator.offer,
        )
        yield _faster("serving.one_cell", turns, OURS, LEAST_ONE_CELL, cells=1)
        turns = alternate(
            {
                THEIRS: Contender(theirs, [bulk_json_request(many)]),
                JSON: Contender(ours, [bulk_json_request(many, **demands())]),
                ARROW: Contender(ours, [bulk_arrow_request(many, **demands())]),
            },
            {
                THEIRS: Length(1, 60, most_requests=3),
                JSON: Length(1, 60, most_requests=10),
                ARROW: Length(1, 60, most_requests=30),
            },
            max(2, rounds - 2),
            bench.generator.offer,
        )
    for name, contender, least in (
        ("serving.bulk_json", JSON, LEAST_BULK_JSON),
        ("serving.bulk_arrow", ARROW, LEAST_BULK_ARROW),
    ):
        yield _faster(name, turns, contender, least, cells=BULK_CELLS)


def measure_batching(bench: Bench) -> Iterator[Result]:
    """The shipped model with 8 clients and with one."""
    rounds = 2 if bench.quick else 5
    windows = cells(_DIFFERENT, CONTEXT_STEPS)
    with bench.our_service() as ours, _plain(bench, "shipped") as theirs:
        contenders = {
            OURS: Contender(ours, forecast_requests(windows, **demands())),
            THEIRS: Contender(theirs, forecast_requests(windows)),
        }
        bench.say("batching: against inference in the handler")
        seconds = 1.5 if bench.quick else 2.5
        crowd = alternate(contenders, Length(CLIENTS, seconds), rounds, bench.generator.offer)
        alone = alternate(contenders, Length(1, seconds), rounds, bench.generator.offer)
    yield from batching_rows(crowd, alone)


def batching_rows(
    crowd: Mapping[str, Sequence[Turn]], alone: Mapping[str, Sequence[Turn]]
) -> Iterator[Result]:
    """From turns to the figures of batching.

    Args:
        crowd: Of both sides with several clients.
        alone: Of both sides with one.
    """
    described = _both(crowd, OURS)
    found = ratios(crowd[OURS], crowd[THEIRS], "rps")
    yield Result.at_least(
        "serving.batching_rps",
        statistics.median(found),
        "x",
        LEAST_RPS,
        opponent=INLINE,
        clients=CLIENTS,
        ratios=found,
        **described,
    )
    found = ratios(crowd[OURS], crowd[THEIRS], "cpu_ms")
    yield Result.at_most(
        "serving.batching_cpu",
        statistics.median(found),
        "x",
        MOST_CPU,
        opponent=INLINE,
        clients=CLIENTS,
        ratios=found,
        **described,
    )
    found = ratios(alone[OURS], alone[THEIRS], "p50_ms")
    yield Result.at_most(
        "serving.batching_p50",
        statistics.median(found),
        "x",
        MOST_P50,
        opponent=INLINE,
        clients=1,
        ratios=found,
        **_both(alone, OURS),
    )


def _faster(
    name: str, turns: Mapping[str, Sequence[Turn]], ours: str, least: float, **detail: Any
) -> Result:
    """How many times sooner ours answers, at p50 of the whole round trip."""
    found = ratios(turns[THEIRS], turns[ours], "p50_ms")
    return Result.at_least(
        name,
        statistics.median(found),
        "x",
        least,
        opponent=OPPONENT,
        cpu_ratio=statistics.median(ratios(turns[THEIRS], turns[ours], "cpu_ms")),
        ratios=found,
        samples=ONE_CELL_STEPS,
        **detail,
        **_both(turns, ours),
    )


def _both(turns: Mapping[str, Sequence[Turn]], ours: str) -> dict[str, Any]:
    """Medians of both sides, each figure by its name, and all there is besides."""
    own, other = medians(turns[ours]), medians(turns[THEIRS])
    names = ("p50_ms", "cpu_ms", "rps")
    return {
        **{f"ours_{name}": own[name] for name in names},
        **{f"opponent_{name}": other[name] for name in names},
        "ours_medians": own,
        "opponent_medians": other,
    }


def _trivial_service(bench: Bench) -> AbstractContextManager[Server]:
    return running(
        python_module("benchmarks.serving.trivial_service"),
        bench.cores.server,
        ready_path="/readyz",
        environment=our_service(),
    )


def _plain(bench: Bench, predictor: str) -> AbstractContextManager[Server]:
    port = free_port()
    return running(
        python_module("benchmarks.serving.opponents.plain_fastapi", str(port), predictor),
        bench.cores.server,
        ready_path="/healthz",
        port=port,
    )
