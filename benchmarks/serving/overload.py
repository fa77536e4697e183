"""Twice the capacity offered: who is answered in time, how many are, and how soon the rest know.

Capacity is the throughput of rung `full` with so many patient clients that the model always has
work. Then twice as much is offered in an open loop, each request with a budget of 100 ms, first
with `full` demanded, then with any rung allowed. Both are done turn by turn, so that a slow spell
of the machine hits both.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.harness import Result
from benchmarks.inference.shapes import CONTEXT_STEPS
from benchmarks.serving.arrivals import poisson_arrivals
from benchmarks.serving.bench import Bench
from benchmarks.serving.bodies import cells, demands, forecast_requests
from benchmarks.serving.generator import ClosedLoad, OpenLoad, Record
from benchmarks.serving.outcomes import (
    Tally,
    answer_seconds,
    percentile_ms,
    refusal_seconds,
    tally,
    throughput_per_s,
)
from benchmarks.serving.processes import Server

BUDGET_MS = 100
OFFERED_RATIO = 2.0
SATURATING_CLIENTS = 64
LEAST_IN_TIME, LEAST_GOODPUT, MOST_REFUSAL_MS, LEAST_ANSWERED = 0.995, 0.9, 10.0, 0.99

_CELLS = 64
_RAMP_S = 1.0
_SEED = 1955


@dataclass(frozen=True)
class Turns:
    """How long everything is.

    Attributes:
        rounds: Of capacity, demanding and free offers.
        capacity_s: Of each measurement of the capacity.
        offer_s: Of each offer.
    """

    rounds: int
    capacity_s: float
    offer_s: float


FULL_TURNS = Turns(rounds=3, capacity_s=4.0, offer_s=8.0)
QUICK_TURNS = Turns(rounds=1, capacity_s=3.0, offer_s=4.0)


@dataclass(frozen=True)
class Offer:
    """One open loop at overload.

    Attributes:
        rate_per_s: Requests offered a second.
        seconds: Its length.
        record: What became of them.
    """

    rate_per_s: float
    seconds: float
    record: Record

    @property
    def tally(self) -> Tally:
        """Requests by what became of them."""
        return tally(self.record, BUDGET_MS / 1000)

    @property
    def goodput_per_s(self) -> float:
        """Answers in time a second."""
        return self.tally.in_time / self.seconds


@dataclass(frozen=True)
class Round:
    """Capacity, then both offers, then capacity again.

    Attributes:
        capacity_per_s: Before and after.
        full: The offer that demands `full`.
        free: The one that takes any rung.
    """

    capacity_per_s: tuple[float, float]
    full: Offer
    free: Offer

    @property
    def goodput_ratio(self) -> float:
        """Answers in time a second, by what the capacity was around it."""
        return self.full.goodput_per_s / statistics.mean(self.capacity_per_s)


def measure_overload(bench: Bench) -> Iterator[Result]:
    """The four figures of overload."""
    turns = QUICK_TURNS if bench.quick else FULL_TURNS
    windows = cells(_CELLS, CONTEXT_STEPS)
    patient = forecast_requests(windows, **demands())
    full = forecast_requests(windows, **demands(budget_ms=str(BUDGET_MS)))
    free = forecast_requests(windows, **demands(budget_ms=str(BUDGET_MS), rung="baseline"))
    with bench.our_service() as server:
        bench.say("overload: warming up")
        saturate(bench, server, patient, 2.0)
        before = saturate(bench, server, patient, turns.capacity_s)
        rounds = []
        for number in range(turns.rounds):
            bench.say(f"overload: round {number + 1}, capacity {before:.0f} a second")
            rate = OFFERED_RATIO * before
            demanding = overload(bench, server, full, rate, turns.offer_s, (_SEED, number))
            relaxed = overload(bench, server, free, rate, turns.offer_s, (_SEED, number))
            after = saturate(bench, server, patient, turns.capacity_s)
            rounds.append(Round((before, after), demanding, relaxed))
            before = after
    yield from overload_rows(rounds, placement=bench.placement)


def saturate(bench: Bench, server: Server, requests: Sequence[bytes], seconds: float) -> float:
    """Answers a second with as many clients as keep the model busy."""
    load = ClosedLoad(server.port, requests, SATURATING_CLIENTS, _RAMP_S + seconds)
    return throughput_per_s(bench.generator.offer(load), _RAMP_S)


def overload(
    bench: Bench,
    server: Server,
    requests: Sequence[bytes],
    rate_per_s: float,
    seconds: float,
    seed: tuple[int, ...],
) -> Offer:
    """Offer more than can be answered."""
    planned_s = poisson_arrivals(rate_per_s, seconds, seed)
    record = bench.generator.offer(OpenLoad(server.port, requests, planned_s))
    return Offer(rate_per_s, seconds, record)


def overload_rows(rounds: Sequence[Round], **detail: Any) -> Iterator[Result]:
    """From what became of the requests to the figures.

    Args:
        rounds: At least one.
        detail: Of every figure.
    """
    full = _together([one.full for one in rounds])
    refusals = np.concatenate([refusal_seconds(one.full.record) for one in rounds])
    common = {
        "budget_ms": BUDGET_MS,
        "capacity_per_s": statistics.median(c for one in rounds for c in one.capacity_per_s),
        "capacities_per_s": [list(one.capacity_per_s) for one in rounds],
        "measured_from": "the request handed to the socket to the last byte of its answer",
        **detail,
    }
    demanding = common | _described([one.full for one in rounds])
    yield Result.at_least(
        "serving.overload_in_time",
        full.in_time_of_accepted,
        "share",
        LEAST_IN_TIME,
        **demanding,
    )
    ratios = [one.goodput_ratio for one in rounds]
    yield Result.at_least(
        "serving.overload_goodput",
        statistics.median(ratios),
        "x",
        LEAST_GOODPUT,
        opponent="itself at capacity",
        ratios=ratios,
        goodputs_per_s=[one.full.goodput_per_s for one in rounds],
        **demanding,
    )
    if len(refusals):
        yield Result.at_most(
            "serving.overload_refusal_ms",
            float(np.percentile(refusals, 99) * 1000),
            "ms",
            MOST_REFUSAL_MS,
            p50_ms=percentile_ms(refusals, 50),
            p90_ms=percentile_ms(refusals, 90),
            most_ms=percentile_ms(refusals, 100),
            **demanding,
        )
    free = _together([one.free for one in rounds])
    yield Result.at_least(
        "serving.overload_rungs",
        free.in_time_of_offered,
        "share",
        LEAST_ANSWERED,
        mix={rung: number / max(1, free.in_time) for rung, number in free.rungs.items()},
        **common,
        **_described([one.free for one in rounds]),
    )


def _together(offers: Sequence[Offer]) -> Tally:
    total, *others = (offer.tally for offer in offers)
    for other in others:
        total += other
    return total


def _described(offers: Sequence[Offer]) -> dict[str, Any]:
    counts = asdict(_together(offers))
    answers = np.concatenate([answer_seconds(offer.record) for offer in offers])
    lag_s = np.concatenate([offer.record.lag_s for offer in offers])
    lag_s = lag_s[np.isfinite(lag_s)]
    return {
        "offered_per_s": [offer.rate_per_s for offer in offers],
        "answer_p50_ms": percentile_ms(answers, 50),
        "answer_p99_ms": percentile_ms(answers, 99),
        "generator_lag_p50_ms": percentile_ms(lag_s, 50),
        "generator_lag_p99_ms": percentile_ms(lag_s, 99),
        "generator_lag_most_ms": percentile_ms(lag_s, 100),
        "in_time_from_plan": _in_time_from_plan(offers),
        **counts,
    }


def _in_time_from_plan(offers: Sequence[Offer]) -> float:
    """Share of the answers that would be in time if the generator's lag counted as well."""
    answered = np.concatenate([offer.record.status == 200 for offer in offers])
    seconds = np.concatenate([offer.record.done_s - offer.record.planned_s for offer in offers])
    return float((seconds[answered] <= BUDGET_MS / 1000).mean()) if answered.any() else 1.0
