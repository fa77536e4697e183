import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.budget import PROFILE_BOUNDS, BudgetBounds, BudgetPolicy, Deadline, Profile
from service.errors import InvalidRequestError

POLICY = BudgetPolicy(Profile.NEAR_RT, PROFILE_BOUNDS[Profile.NEAR_RT])


def deadline(stated_ms=None, header=None):
    return POLICY.deadline(10.0, stated_ms=stated_ms, path="/budget_ms", header=header)


def test_a_request_without_a_budget_gets_the_profiles_default():
    assert deadline() == Deadline(10.0, 100.0)


def test_near_rt_and_non_rt_differ_in_their_default():
    assert PROFILE_BOUNDS[Profile.NEAR_RT].default_ms == 100
    assert PROFILE_BOUNDS[Profile.NON_RT].default_ms == 5000


def test_the_header_states_a_budget():
    assert deadline(header="250").budget_ms == 250


def test_the_body_wins_over_the_header():
    assert deadline(stated_ms=30, header="250").budget_ms == 30


@pytest.mark.parametrize("stated_ms", [0, -1, 0.5, 60_001])
def test_a_budget_outside_the_bounds_is_refused_with_the_range(stated_ms):
    with pytest.raises(InvalidRequestError, match="1 to 60000 ms") as caught:
        deadline(stated_ms=stated_ms)
    assert caught.value.faults[0].path == "/budget_ms"


@pytest.mark.parametrize("header", ["fast", "", "nan", "inf", "1e999"])
def test_a_header_that_is_no_number_is_refused_by_its_name(header):
    with pytest.raises(InvalidRequestError, match="as a number") as caught:
        deadline(header=header)
    assert caught.value.faults[0].path == "header:X-Latency-Budget-Ms"


@given(st.floats(0, 1e6), st.floats(1, 1e5))
def test_an_answer_at_its_deadline_is_in_time_and_one_after_it_is_late(arrival_s, budget_ms):
    due = Deadline(arrival_s, budget_ms)
    assert not due.has_passed(due.expires_s)
    assert due.has_passed(due.expires_s + 1e-3)


def test_bounds_that_contradict_each_other_are_refused():
    with pytest.raises(ValueError, match="least <= default <= most"):
        BudgetBounds(default_ms=100, least_ms=1, most_ms=50)
