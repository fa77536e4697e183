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


def test_a_bucket_that_is_full_again_makes_room():
    clock = FakeClock()
    limiter = RateLimiter(clock, 1, 2, 2)
    assert [limiter.admit(client) for client in "aabb"] == [0] * 4
    clock.advance(1)
    assert limiter.admit("a") == 0
    clock.advance(1)
    # That of b is full by now, that of a is not.
    assert [limiter.admit("c") for _ in range(2)] == [0, 0]
    assert limiter.admit("c") > 0
    assert limiter.admit("a") == 0
    assert limiter.admit("a") > 0
    assert len(limiter) == 2


def test_newcomers_share_a_bucket_where_there_is_no_place_and_no_one_loses_its_own():
    limiter = RateLimiter(FakeClock(), 1, 3, 10)
    assert [limiter.admit("hog") for _ in range(3)] == [0] * 3
    admitted = sum(limiter.admit(f"name {i}") == 0 for i in range(20_000))
    assert admitted == 9 + 3
    assert limiter.admit("hog") > 0


@given(RATES, BURSTS, st.lists(st.tuples(st.floats(0, 10), st.integers(0, 6)), max_size=80))
def test_many_names_get_no_more_than_their_buckets_and_the_shared_one(rate, burst, asked):
    clock = FakeClock()
    limiter = RateLimiter(clock, rate, burst, 3)
    admitted, elapsed_s = 0, 0.0
    for wait_s, name in asked:
        clock.advance(wait_s)
        elapsed_s += wait_s
        admitted += limiter.admit(str(name)) == 0
        assert admitted <= 4 * (burst + rate * elapsed_s) + 1e-6 * len(asked)


def test_many_newcomers_find_a_place_one_after_the_other_however_many_are_kept():
    clock = FakeClock()
    limiter = RateLimiter(clock, 1, 1, 1000)
    for number in range(1000):
        limiter.admit(str(number))
    clock.advance(1)
    assert [limiter.admit(f"new {number}") for number in range(1000)] == [0] * 1000


def test_one_client_takes_nothing_from_another():
    limiter = RateLimiter(FakeClock(), 1, 1, 10)
    assert limiter.admit("a") == 0
    assert limiter.admit("a") > 0
    assert limiter.admit("b") == 0


@pytest.mark.parametrize(("wait_s", "whole_s"), [(0.001, 1), (1.0, 1), (1.2, 2), (90.0, 90)])
def test_retry_after_is_whole_and_never_too_early(wait_s, whole_s):
    assert retry_after_s(wait_s) == whole_s
