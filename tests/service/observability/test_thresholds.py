from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.observability.thresholds import ThresholdError, Thresholds

OBJECTIVES = {"in_time_ratio", "answered_ratio"}
SHARES = {
    *("arrivals_ratio", "refused_observations_ratio", "degraded_ratio", "baseline_ratio"),
    *("rate_limited_ratio", "coverage_difference", "canary_coverage_difference"),
}


@pytest.mark.parametrize("name", [field.name for field in fields(Thresholds)])
@given(value=st.floats(0.94, 0.999))
def test_what_is_stated_holds_and_nothing_else_changes(name, value):
    before = Thresholds()
    after = before.changed([f"{name}={value!r}"])
    for field in fields(Thresholds):
        expected = value if field.name == name else getattr(before, field.name)
        assert getattr(after, field.name) == expected


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf"])
@pytest.mark.parametrize("name", [field.name for field in fields(Thresholds)])
def test_a_limit_that_nothing_or_everything_exceeds_is_refused(name, value):
    with pytest.raises(ThresholdError, match=f"{name}: expected a number over 0"):
        Thresholds().changed([f"{name}={value}"])


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_an_objective_that_leaves_no_error_is_refused(name):
    with pytest.raises(ThresholdError, match="leaves no error to spend"):
        Thresholds().changed([f"{name}=1"])


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_an_objective_whose_alert_could_never_fire_is_refused(name):
    # A tenth of the requests may fail: fourteen times as many would be more than there are.
    with pytest.raises(ThresholdError, match=f"{name}: expected more than 0.9306, got 0.9"):
        Thresholds().changed([f"{name}=0.9"])


@pytest.mark.parametrize("name", sorted(SHARES))
def test_a_share_of_more_than_all_is_refused(name):
    with pytest.raises(ThresholdError, match=rf"{name}: expected a share below 1 .*, got 5"):
        Thresholds().changed([f"{name}=5"])


def test_threads_may_work_more_than_all_of_the_time():
    assert Thresholds().changed(["busy_ratio=1.7"]).busy_ratio == 1.7


@pytest.mark.parametrize("statement", ["", "restarts", "restart=3", "=3"])
def test_what_is_no_threshold_is_refused_with_those_that_there_are(statement):
    with pytest.raises(ThresholdError, match=r"expected NAME=VALUE with one of .*restarts"):
        Thresholds().changed([statement])


def test_a_value_that_is_no_number_is_refused():
    with pytest.raises(ThresholdError, match="restarts: expected a number, got 'many'"):
        Thresholds().changed(["restarts=many"])
