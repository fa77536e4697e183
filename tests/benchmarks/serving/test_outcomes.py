"""Each request is counted once; what was accepted and not answered in time counts against us."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.serving.generator import Record
from benchmarks.serving.outcomes import (
    percentile_ms,
    refusal_seconds,
    tally,
    throughput_per_s,
)
from tests.benchmarks.serving.records import record

MIXED = record(
    (200, 50), (200, 100.001), (429, 1), (503, 2), (504, 101), (500, 3), (0, 0), (200, 99)
)


def test_each_request_is_counted_by_what_became_of_it() -> None:
    found = tally(MIXED, 0.1)
    assert (found.offered, found.in_time, found.late) == (8, 2, 1)
    assert (found.refused, found.expired, found.failed, found.lost) == (2, 1, 1, 1)
    assert found.rungs == {"full": 2, "short": 0, "baseline": 0}


def test_all_that_was_not_refused_was_accepted() -> None:
    found = tally(MIXED, 0.1)
    assert found.accepted == 6
    assert found.in_time_of_accepted == pytest.approx(2 / 6)
    assert found.in_time_of_offered == pytest.approx(2 / 8)


def test_the_lag_of_the_generator_is_not_the_latency_of_the_server() -> None:
    lagging = record((200, 99), lag_s=0.05)
    assert tally(lagging, 0.1).in_time == 1
    assert lagging.lag_s == pytest.approx([0.05])


STATUSES = st.sampled_from([0, 200, 200, 404, 429, 500, 503, 504])


@given(rows=st.lists(st.tuples(STATUSES, st.floats(0, 200))), budget_s=st.floats(0, 0.3))
def test_the_parts_are_the_whole(rows: list[tuple[int, float]], budget_s: float) -> None:
    found = tally(record(*rows), budget_s)
    parts = (found.in_time, found.late, found.refused, found.expired, found.failed, found.lost)
    assert sum(parts) == found.offered == len(rows)
    assert sum(found.rungs.values()) == found.in_time


@given(cut=st.integers(0, 8))
def test_two_parts_of_a_run_add_up_to_it(cut: int) -> None:
    def part(chosen: slice) -> Record:
        return Record(
            MIXED.planned_s[chosen],
            MIXED.sent_s[chosen],
            MIXED.done_s[chosen],
            MIXED.status[chosen],
            MIXED.rung[chosen],
        )

    first, second = tally(part(slice(cut)), 0.1), tally(part(slice(cut, None)), 0.1)
    assert first + second == tally(MIXED, 0.1)


def test_nothing_offered_is_nothing_late() -> None:
    assert tally(record(), 0.1).in_time_of_accepted == 1.0


def test_throughput_counts_answers_between_the_ramp_and_the_last_request() -> None:
    rows = [(200, 0.5)] * 1_001  # one a millisecond
    assert throughput_per_s(record(*rows), 0.5) == pytest.approx(1_000, rel=0.01)
    refused = [(200, 0.5), (429, 0.5)] * 500
    assert throughput_per_s(record(*refused), 0.5) == pytest.approx(500, rel=0.01)


def test_a_run_that_ended_in_its_ramp_has_no_throughput() -> None:
    with pytest.raises(ValueError, match="requests after"):
        throughput_per_s(record((200, 1)), 1.0)


def test_refusals_are_timed_apart() -> None:
    assert refusal_seconds(MIXED) == pytest.approx([0.001, 0.002])
    assert percentile_ms(refusal_seconds(MIXED), 100) == pytest.approx(2)
    assert percentile_ms(np.array([]), 99) is None
