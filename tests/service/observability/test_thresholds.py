from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.observability.thresholds import ThresholdError, Thresholds

SHARES = {"in_time_ratio", "answered_ratio"}


@pytest.mark.parametrize("name", [field.name for field in fields(Thresholds)])
@given(value=st.floats(1e-6, 0.999))
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


@pytest.mark.parametrize("name", sorted(SHARES))
def test_an_objective_that_leaves_no_error_is_refused(name):
    with pytest.raises(ThresholdError, match="leaves no error to spend"):
        Thresholds().changed([f"{name}=1"])


@pytest.mark.parametrize("statement", ["", "restarts", "restart=3", "=3"])
def test_what_is_no_threshold_is_refused_with_those_that_there_are(statement):
    with pytest.raises(ThresholdError, match=r"expected NAME=VALUE with one of .*restarts"):
        Thresholds().changed([statement])


def test_a_value_that_is_no_number_is_refused():
    with pytest.raises(ThresholdError, match="restarts: expected a number, got 'many'"):
        Thresholds().changed(["restarts=many"])
