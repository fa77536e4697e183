"""From what was measured to the figures of the table: ratios, targets, and what is worst."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks.serving.generator import Record
from benchmarks.serving.overload import Offer, Round, overload_rows
from benchmarks.serving.plain import OURS, THEIRS, batching_rows
from benchmarks.serving.rivals import Match, rival_row
from benchmarks.serving.soak import MOST_GROWTH_BYTES, Kept, growth, soak_row
from benchmarks.serving.turns import Turn, UnansweredError, medians, ratios, turn_of
from tests.benchmarks.serving.records import record


def turn(rps: float = 100.0, p50_ms: float = 1.0, p99_ms: float = 2.0, cpu_ms: float = 3.0) -> Turn:
    return Turn(10, rps, p50_ms, p99_ms, cpu_ms)


def offer(rows: Sequence[tuple[int, float]], seconds: float = 1.0, **options) -> Offer:
    return Offer(200.0, seconds, record(*rows, **options))


GOOD = [(200, 40.0)] * 95 + [(429, 2.0)] * 105


def rows_of(full: Offer, free: Offer | None = None, capacity: float = 100.0) -> dict:
    rounds = [Round((capacity, capacity), full, free or full)]
    return {row.id: row for row in overload_rows(rounds)}


def test_targets_of_overload_are_those_of_the_issue() -> None:
    found = rows_of(offer(GOOD))
    assert {name: row.target for name, row in found.items()} == {
        "serving.overload_in_time": 0.995,
        "serving.overload_goodput": 0.9,
        "serving.overload_refusal_ms": 10.0,
        "serving.overload_rungs": 0.99,
    }


def test_goodput_is_answers_in_time_by_the_capacity_around_them() -> None:
    found = rows_of(offer(GOOD), capacity=100.0)["serving.overload_goodput"]
    assert found.value == pytest.approx(0.95)
    assert found.met
    assert not rows_of(offer(GOOD), capacity=110.0)["serving.overload_goodput"].met


def test_refusals_do_not_count_as_accepted_and_expiries_do() -> None:
    found = rows_of(offer([*GOOD, (504, 100.0)]))["serving.overload_in_time"]
    assert found.value == pytest.approx(95 / 96)
    assert found.met is False
    assert found.detail["refused"] == 105
    assert found.detail["expired"] == 1


def test_late_answers_are_no_goodput() -> None:
    found = rows_of(offer([(200, 40.0)] * 50 + [(200, 101.0)] * 50))
    assert found["serving.overload_goodput"].value == pytest.approx(0.5)
    assert found["serving.overload_in_time"].value == pytest.approx(0.5)


def test_refusals_are_judged_at_p99() -> None:
    refused = [(429, 1.0)] * 980 + [(429, 50.0)] * 20
    found = rows_of(offer([(200, 1.0), *refused]))["serving.overload_refusal_ms"]
    assert found.value == pytest.approx(50.0)
    assert found.detail["p50_ms"] == pytest.approx(1.0)
    assert not found.met


def test_without_refusals_there_is_no_time_of_them() -> None:
    assert "serving.overload_refusal_ms" not in rows_of(offer([(200, 1.0)]))


def test_free_rungs_are_judged_by_all_that_was_offered() -> None:
    free = offer([(200, 40.0)] * 99 + [(429, 1.0)], rung="baseline")
    found = rows_of(offer(GOOD), free)["serving.overload_rungs"]
    assert found.value == pytest.approx(0.99)
    assert found.met
    assert found.detail["mix"] == {"full": 0.0, "short": 0.0, "baseline": 1.0}


def test_the_lag_of_the_generator_is_told() -> None:
    found = rows_of(offer(GOOD, lag_s=0.07))["serving.overload_in_time"]
    assert found.detail["generator_lag_p50_ms"] == pytest.approx(70)
    assert found.value == 1.0
    assert found.detail["in_time_from_plan"] == 0.0


def test_ratios_are_taken_within_a_round() -> None:
    ours, theirs = [turn(rps=100), turn(rps=50)], [turn(rps=50), turn(rps=25)]
    assert ratios(ours, theirs, "rps") == [2.0, 2.0]
    assert medians(ours)["rps"] == 75


def test_a_turn_is_made_of_whole_round_trips_and_the_servers_cpu() -> None:
    found = turn_of("ours", record(*[(200, 10.0)] * 100), cpu_s=0.2)
    assert found.answers == 100
    assert found.p50_ms == pytest.approx(10)
    assert found.cpu_ms == pytest.approx(2.0)
    assert found.rps == pytest.approx(100 / (0.099 + 0.010))


@pytest.mark.parametrize("other", [[], [(200, 1.0), (429, 1.0)], [(0, 0.0)]])
def test_a_server_that_does_not_answer_is_not_timed(other: list[tuple[int, float]]) -> None:
    with pytest.raises(UnansweredError, match="LitServe"):
        turn_of("LitServe", record(*other), 0.0)


def test_batching_is_compared_with_eight_clients_and_with_one() -> None:
    crowd = {OURS: [turn(rps=170, cpu_ms=2)], THEIRS: [turn(rps=100, cpu_ms=4)]}
    alone = {OURS: [turn(p50_ms=1.2)], THEIRS: [turn(p50_ms=1.0)]}
    found = {row.id: row for row in batching_rows(crowd, alone)}
    assert found["serving.batching_rps"].value == pytest.approx(1.7)
    assert found["serving.batching_cpu"].value == pytest.approx(0.5)
    assert found["serving.batching_p50"].value == pytest.approx(1.2)
    assert [row.met for row in found.values()] == [True, True, False]
    assert [row.target for row in found.values()] == [1.6, 0.7, 1.1]


def match(words: str, rps: float, p99_ms: float) -> Match:
    """Ours has 100 a second and a p99 of 2 ms; better of theirs only with 64 clients."""
    better = {OURS: [turn()], THEIRS: [turn(rps=50, p99_ms=4)]}
    return Match(words, {8: better, 64: {OURS: [turn()], THEIRS: [turn(rps=rps, p99_ms=p99_ms)]}})


def test_the_worst_figure_against_the_opponents_best_setting_counts() -> None:
    matches = [match("a", rps=80, p99_ms=4), match("b", rps=90, p99_ms=1.8)]
    found = rival_row("serving.vs_x", "x", matches)
    assert found.value == pytest.approx(0.9)
    assert found.detail["setting"] == "b"
    assert found.detail["p99_64"] == pytest.approx(0.9)
    assert found.detail["rps_64"] == pytest.approx(100 / 90)
    assert found.detail["rps_8"] == pytest.approx(2.0)
    assert found.met is False
    assert {*found.detail["settings"]} == {"a", "b"}


def kept(memory_bytes: int = 0, tasks: int = 4, threads: int = 8, descriptors: int = 14) -> Kept:
    return Kept(memory_bytes, tasks, threads, descriptors)


def test_growth_is_from_the_first_moments_to_the_last() -> None:
    observed = [kept(number) for number in (10, 0, 11, 50, 20, 21, 900, 22)]
    assert growth(observed, "memory_bytes") == 22 - 10


STEADY = [kept(2**29)] * 8


def test_a_service_that_keeps_nothing_passes_the_soak() -> None:
    found = soak_row(STEADY, np.array([200, 429, 504, 422, 0]))
    assert found.met
    assert found.value == 0
    assert found.detail["statuses"] == {"0": 1, "200": 1, "422": 1, "429": 1, "504": 1}


@pytest.mark.parametrize(
    "later",
    [
        kept(2**29 + 2 * MOST_GROWTH_BYTES),
        kept(2**29, tasks=5),
        kept(2**29, threads=9),
        kept(2**29, descriptors=15),
    ],
)
def test_whatever_grows_fails_the_soak(later: Kept) -> None:
    assert soak_row([*STEADY, later, later, later], np.array([200])).met is False


def test_a_server_error_fails_the_soak() -> None:
    found = soak_row(STEADY, np.array([200, 500]))
    assert found.met is False
    assert found.detail["server_errors"] == 1


def test_records_need_no_order_of_answers() -> None:
    mixed = record((200, 30.0), (200, 1.0))
    assert isinstance(mixed, Record)
    assert turn_of("ours", mixed, 0.0).rps == pytest.approx(2 / 0.030)
