"""What of a request counts against its latency budget."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from service.errors import ANSWERS, ClientGoneError, DeadlineError
from service.metrics import Metrics
from service.middleware import RequestTimer
from service.timing import SCOPE_KEY, RequestTiming, route_of
from tests.service.fakes import FakeClock

DURATIONS_S = st.floats(1e-6, 1e3)
BUDGETS_MS = st.floats(1, 6e5)
OTHERS = sorted(set(ANSWERS) - {DeadlineError, ClientGoneError}, key=lambda error: error.__name__)


def timing(budget_ms=100.0, error=None):
    clock = FakeClock()
    metrics = Metrics(CollectorRegistry(), clock, "near-rt")
    return RequestTiming(0.0, clock, metrics, budget_ms=budget_ms, error=error)


@given(duration_s=DURATIONS_S, budget_ms=BUDGETS_MS)
def test_an_answer_used_the_share_of_its_budget_that_it_took(duration_s, budget_ms):
    used = timing(budget_ms).budget_used(duration_s)
    assert used == pytest.approx(1000 * duration_s / budget_ms)


@pytest.mark.parametrize("error", OTHERS)
def test_a_refusal_or_a_failure_is_quick_and_says_nothing_of_accepted_requests(error):
    assert timing(error=error).budget_used(0.001) is None
    assert timing(error=error).budget_used(60) is None


def test_a_request_that_was_given_up_before_its_time_was_over_is_late():
    used = timing(error=DeadlineError).budget_used(0.07)
    assert used is not None
    assert 1 < used < 1.01
    assert timing(error=DeadlineError).budget_used(0.3) == pytest.approx(3)


def test_a_client_that_leaves_was_answered_too_late_or_not_at_all():
    assert timing(error=ClientGoneError).budget_used(0.05) is None
    assert timing(error=ClientGoneError).budget_used(0.2) == pytest.approx(2)


def test_a_route_without_a_budget_uses_none():
    assert timing(budget_ms=None).budget_used(5) is None


def test_a_request_that_no_route_took_is_unmatched():
    assert route_of({}) == "unmatched"


def test_a_bug_is_timed_and_is_no_answer_in_time():
    registry = CollectorRegistry()

    async def app(scope, _receive, _send):
        scope[SCOPE_KEY].budget_ms = 100.0
        raise ValueError("a bug")

    async def nothing(*_: object) -> Any:
        return {}

    clock = FakeClock()
    timer = RequestTimer(app, clock, Metrics(registry, clock, "near-rt"))
    with pytest.raises(ValueError, match="a bug"):
        asyncio.run(timer({"type": "http"}, nothing, nothing))
    labels = {"route": "unmatched", "profile": "near-rt"}
    assert registry.get_sample_value("rancast_request_duration_seconds_count", labels) == 1
    assert registry.get_sample_value("rancast_latency_budget_used_ratio_count", labels) is None
