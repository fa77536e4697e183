import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.access.rate_limit import RateLimiter, retry_after_s
from tests.service.fakes import FakeClock

RATES = st.floats(0.01, 1000)
BURSTS = st.integers(1, 50)
WAITS = st.lists(st.floats(0, 10), min_size=1, max_size=60)


@given(RATES, BURSTS, WAITS)
def test_no_client_ever_gets_more_than_its_burst_and_its_rate(rate, burst, waits):
    clock = FakeClock()
    limiter = RateLimiter(clock, rate, burst, 10)
    admitted, elapsed_s = 0, 0.0
    for wait_s in waits:
        clock.advance(wait_s)
        elapsed_s += wait_s
        admitted += limiter.admit("a") == 0
        assert admitted <= burst + rate * elapsed_s + 1e-6 * len(waits)


@given(RATES, BURSTS, WAITS)
def test_whoever_waits_as_long_as_it_was_told_is_admitted(rate, burst, waits):
    clock = FakeClock()
    limiter = RateLimiter(clock, rate, burst, 10)
    for wait_s in waits:
        clock.advance(wait_s)
        told_s = limiter.admit("a")
        if told_s > 0:
            clock.advance(told_s * (1 + 1e-9) + 1e-9)
            assert limiter.admit("a") == 0


@given(RATES, BURSTS)
def test_a_silent_client_may_make_its_whole_burst_at_once(rate, burst):
    limiter = RateLimiter(FakeClock(), rate, burst, 10)
    assert [limiter.admit("a") for _ in range(burst)] == [0] * burst
    assert limiter.admit("a") > 0


@given(st.lists(st.integers(0, 30), max_size=200), st.integers(1, 10))
def test_the_number_of_buckets_is_bounded(clients, most):
    limiter = RateLimiter(FakeClock(), 1, 1, most)
    for client in clients:
        limiter.admit(str(client))
    assert len(limiter) <= most


def test_the_client_that_was_silent_for_longest_is_forgotten_first():
    limiter = RateLimiter(FakeClock(), 1, 1, 2)
    assert [limiter.admit(client) for client in "ab"] == [0, 0]
    assert limiter.admit("a") > 0
    assert limiter.admit("c") == 0
    assert limiter.admit("a") > 0, "a asked last, so b had to go"
    assert limiter.admit("b") == 0


def test_one_client_takes_nothing_from_another():
    limiter = RateLimiter(FakeClock(), 1, 1, 10)
    assert limiter.admit("a") == 0
    assert limiter.admit("a") > 0
    assert limiter.admit("b") == 0


@pytest.mark.parametrize(("wait_s", "whole_s"), [(0.001, 1), (1.0, 1), (1.2, 2), (90.0, 90)])
def test_retry_after_is_whole_and_never_too_early(wait_s, whole_s):
    assert retry_after_s(wait_s) == whole_s
