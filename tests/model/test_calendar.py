"""Calendar inputs follow the local clock, through both changes of daylight saving."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from model.calendar import CALENDAR_WIDTH, calendar_inputs, utc_offset_ms

HOUR_MS = 3_600_000


def at(year: int, month: int, day: int, hour: int = 0) -> int:
    return int(datetime(year, month, day, hour, tzinfo=UTC).timestamp() * 1000)


def inputs(start_ms: int, zone: str = "UTC", step_ms: int = HOUR_MS) -> np.ndarray:
    found: np.ndarray = calendar_inputs(np.array([start_ms]), 16 * step_ms, step_ms, zone)[0]
    return found


def test_midnight_and_noon_are_opposite():
    midnight, noon = inputs(at(2026, 1, 5)), inputs(at(2026, 1, 5, 12))
    np.testing.assert_allclose(midnight[:2], [0, 1], atol=1e-6)
    np.testing.assert_allclose(noon[:2], [0, -1], atol=1e-6)


def test_the_end_of_a_patch_has_its_own_clock():
    first = inputs(at(2026, 1, 5))
    np.testing.assert_allclose(first[7:], inputs(at(2026, 1, 5, 16))[:7], atol=1e-6)


@pytest.mark.parametrize(("day", "weekend"), [(5, 0), (9, 0), (10, 1), (11, 1), (12, 0)])
def test_saturday_and_sunday_are_the_weekend(day, weekend):
    assert inputs(at(2026, 1, day))[6] == weekend


def test_the_local_clock_decides():
    np.testing.assert_allclose(
        inputs(at(2026, 1, 5, 12), "Asia/Tokyo")[:7], inputs(at(2026, 1, 5, 21))[:7], atol=1e-6
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [((2026, 3, 29, 0), (2026, 3, 29, 2)), ((2026, 10, 25, 0), (2026, 10, 25, 2))],
)
def test_the_clock_jumps_at_both_changes(before, after):
    zone = "Europe/Madrid"
    offsets = utc_offset_ms(np.array([at(*before), at(*after)]), zone) // HOUR_MS
    assert abs(int(offsets[1] - offsets[0])) == 1


def test_the_same_local_hour_reads_the_same_in_summer_and_winter():
    summer = inputs(at(2026, 7, 6, 6), "Europe/Madrid")  # 08:00, Monday
    winter = inputs(at(2026, 1, 5, 7), "Europe/Madrid")  # 08:00, Monday
    np.testing.assert_allclose(summer, winter, atol=1e-6)


@pytest.mark.parametrize("step_ms", [1_000, 59_000, 7 * 24 * HOUR_MS])
def test_below_a_minute_and_above_a_day_the_clock_says_nothing(step_ms):
    assert inputs(at(2026, 1, 5, 7), step_ms=step_ms).tolist() == [0.0] * CALENDAR_WIDTH


def test_a_zone_with_half_hours_is_honoured():
    assert utc_offset_ms(np.array([at(2026, 1, 5)]), "Asia/Kolkata").tolist() == [5.5 * HOUR_MS]


@pytest.mark.parametrize(("zone", "hours"), [("Asia/Tokyo", 9), ("America/New_York", -5)])
def test_the_edges_of_time_have_an_offset_too(zone, hours):
    edges = np.array([at(1, 1, 1) - 48 * HOUR_MS, at(9999, 12, 31, 23) + 48 * HOUR_MS])
    assert (np.abs(utc_offset_ms(edges, zone) - hours * HOUR_MS) < HOUR_MS).all()
