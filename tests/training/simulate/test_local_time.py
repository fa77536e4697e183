"""The local clock of arrays of instants."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.simulate.local_time import local_time, utc_offset_ms

ZONES = ["UTC", "Europe/Madrid", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"]


@given(
    minute=st.integers(0, 60 * 24 * 365 * 60),
    zone=st.sampled_from(ZONES),
)
def test_local_time_agrees_with_the_standard_library(minute, zone):
    time_ms = minute * 60_000
    local = local_time(np.array([time_ms], dtype=np.int64), ZoneInfo(zone))
    wall = datetime.fromtimestamp(time_ms / 1000, ZoneInfo(zone))
    assert local.hour[0] == pytest.approx(wall.hour + wall.minute / 60)
    assert local.weekday[0] == wall.weekday()
    assert local.day[0] == wall.date().toordinal() - datetime(1970, 1, 1).toordinal()


@pytest.mark.parametrize(
    ("before", "hours"),
    [
        (datetime(2026, 3, 29, 0, 30, tzinfo=UTC), [1.5, 3.5]),
        (datetime(2026, 10, 25, 0, 30, tzinfo=UTC), [2.5, 2.5]),
    ],
    ids=["spring forward", "fall back"],
)
def test_clock_changes_move_the_local_hour(before, hours):
    start_ms = int(before.timestamp() * 1000)
    local = local_time(
        np.array([start_ms, start_ms + 3_600_000], dtype=np.int64), ZoneInfo("Europe/Madrid")
    )
    np.testing.assert_array_equal(local.hour, hours)


def test_offset_is_positive_east_of_greenwich():
    assert utc_offset_ms(0, ZoneInfo("Europe/Madrid")) == 3_600_000
    assert utc_offset_ms(0, ZoneInfo("America/New_York")) == -5 * 3_600_000
