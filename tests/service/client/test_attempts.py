"""How often, when and how long: on a clock that stands still."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.client.attempts import BUDGET_HEADER, Attempts
from service.client.connection import Connection
from service.client.errors import (
    DeadlineExceededError,
    InvalidCallError,
    OverloadedError,
    Problem,
    ServerFailedError,
    UnavailableError,
    UnreachableError,
)

ADDRESS = "http://127.0.0.1"


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def attempts(clock=None, *, budget_ms=None, draw=lambda: 1.0, **connection) -> Attempts:
    return Attempts(Connection(ADDRESS, **connection), None, budget_ms, clock or Clock(), draw)


def busy(retry_after_s: float | None) -> OverloadedError:
    return OverloadedError(Problem(429, "full", "busy", retry_after_s=retry_after_s))


def test_the_server_says_when_to_come_back():
    assert attempts().pause_s(busy(3)) == 3


def test_a_pause_that_would_outlast_the_call_is_not_begun():
    with pytest.raises(OverloadedError):
        attempts(timeout_s=3).pause_s(busy(3))


def test_pauses_double_up_to_a_bound_where_the_server_said_none():
    tries = attempts(timeout_s=100, most_attempts=20)
    pauses = [tries.pause_s(UnreachableError("gone")) for _ in range(8)]
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0]


@given(st.floats(0, 1))
def test_a_pause_is_drawn_from_its_upper_half(drawn):
    pause_s = attempts(draw=lambda: drawn).pause_s(UnreachableError("gone"))
    assert 0.05 <= pause_s <= 0.1


def test_there_are_no_more_tries_than_allowed():
    tries = attempts(most_attempts=2)
    tries.pause_s(UnreachableError("gone"))
    with pytest.raises(UnreachableError):
        tries.pause_s(UnreachableError("gone"))


@pytest.mark.parametrize("kind", [OverloadedError, UnavailableError])
def test_a_refusal_that_passes_is_tried_again(kind):
    assert attempts().pause_s(kind(Problem(503, "x", "y"))) > 0


@pytest.mark.parametrize(
    "error",
    [
        InvalidCallError(Problem(422, "invalid", "x")),
        ServerFailedError(Problem(500, "inference", "x")),
        DeadlineExceededError("late"),
    ],
)
def test_what_another_try_does_not_mend_is_an_error_at_once(error):
    with pytest.raises(type(error)):
        attempts().pause_s(error)


def test_the_server_is_told_the_time_that_is_left():
    clock = Clock()
    tries = attempts(clock, timeout_s=2)
    assert tries.budget_header() == {BUDGET_HEADER: "2000.000"}
    clock.now_s += 1.5
    assert tries.budget_header() == {BUDGET_HEADER: "500.000"}


@pytest.mark.parametrize(
    ("budget_ms", "timeout_s", "told"),
    [(50, 2, "50.000"), (5000, 2, "2000.000"), (None, 1000, "60000.000"), (None, 1e-6, "1.000")],
)
def test_the_budget_is_the_least_of_stated_left_and_allowed(budget_ms, timeout_s, told):
    header = attempts(budget_ms=budget_ms, timeout_s=timeout_s).budget_header()
    assert header == {BUDGET_HEADER: told}


def test_no_budget_is_told_where_the_caller_stated_no_time():
    tries = attempts()
    assert tries.budget_header() == {}
    assert tries.remaining_s() == 10


def test_a_call_without_time_is_over():
    clock = Clock()
    tries = attempts(clock, timeout_s=1)
    clock.now_s += 1
    with pytest.raises(DeadlineExceededError):
        tries.remaining_s()


@pytest.mark.parametrize(
    "wrong",
    [
        {"base_url": "127.0.0.1:80"},
        {"timeout_s": 0},
        {"timeout_s": float("inf")},
        {"most_budget_ms": -1},
        {"most_attempts": 0},
    ],
)
def test_a_connection_that_cannot_be_is_refused(wrong):
    with pytest.raises(ValueError, match="expected"):
        Connection(**{"base_url": ADDRESS, **wrong})


def test_a_timeout_of_nothing_is_refused():
    with pytest.raises(ValueError, match="positive timeout"):
        Attempts(Connection(ADDRESS), 0, None, Clock())
