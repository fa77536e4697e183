"""Errors are laid on the local day, clock changes included."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.backtest.hours import has_hours, hourly_errors, local_hours, local_times

HOUR_MS = 3_600_000


def ms(month: int, day: int, hour: int) -> int:
    return round(datetime(2026, month, day, hour, tzinfo=UTC).timestamp() * 1000)


def test_the_hour_is_that_of_the_cells_clock():
    assert local_hours([ms(7, 1, 22)], 3, HOUR_MS, "Europe/Madrid").tolist() == [[0, 1, 2]]


def test_the_hour_that_a_clock_leaves_out_has_no_errors():
    night = local_hours([ms(3, 28, 23)], 5, HOUR_MS, "Europe/Madrid")
    assert night.tolist() == [[0, 1, 3, 4, 5]]


def test_the_hour_that_a_clock_repeats_is_there_twice():
    night = local_hours([ms(10, 24, 22)], 5, HOUR_MS, "Europe/Madrid")
    assert night.tolist() == [[0, 1, 2, 2, 3]]


@given(
    start=st.datetimes(datetime(1990, 1, 1), datetime(2035, 1, 1)),
    step_minutes=st.sampled_from([1, 5, 15, 60, 360]),
    zone=st.sampled_from(["UTC", "Asia/Kathmandu", "Australia/Lord_Howe", "America/St_Johns"]),
)
def test_local_times_are_those_of_the_standard_library(start, step_minutes, zone):
    begin = start.replace(second=0, microsecond=0, tzinfo=UTC)
    step = timedelta(minutes=step_minutes)
    found = local_times([round(begin.timestamp() * 1000)], 9, step_minutes * 60_000, zone)
    expected = [
        (begin + i * step).astimezone(ZoneInfo(zone)).replace(tzinfo=UTC).timestamp() * 1000
        for i in range(9)
    ]
    assert found[0].tolist() == expected


def test_bias_and_size_of_errors_by_hour():
    target = np.array([[10.0, 10.0, np.nan], [4.0, 8.0, 8.0]])
    median = np.array([[8.0, 11.0, 1.0], [8.0, 8.0, np.nan]])
    hours = np.array([[0, 1, 2], [0, 1, 2]])
    errors = hourly_errors(median, target, hours)
    assert errors.targets[:3].tolist() == [2, 2, 0]
    assert errors.bias[:2].tolist() == [-1.0, -0.5]
    assert errors.mean_absolute_error[:2].tolist() == [3.0, 0.5]
    assert errors.mean_target[:2].tolist() == [7.0, 9.0]
    assert np.isnan(errors.bias[2])


def test_parts_add_up():
    rng = np.random.default_rng(0)
    target, median = rng.normal(size=(2, 6, 8))
    hours = rng.integers(0, 24, size=(6, 8))
    whole = hourly_errors(median, target, hours)
    parts = [hourly_errors(median[i::2], target[i::2], hours[i::2]) for i in range(2)]
    total = parts[0] + parts[1]
    np.testing.assert_array_equal(total.targets, whole.targets)
    np.testing.assert_allclose(total.error, whole.error)
    np.testing.assert_allclose(total.absolute_error, whole.absolute_error)


@pytest.mark.parametrize(
    ("step_seconds", "has"), [(1, False), (60, True), (3600, True), (86_400, False)]
)
def test_hours_are_for_steps_from_a_minute_to_less_than_a_day(step_seconds, has):
    assert has_hours(step_seconds * 1000) is has
