from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.timestamps import EARLIEST_MS, LATEST_MS, is_time_zone, to_ms, to_rfc3339


@given(st.integers(EARLIEST_MS, LATEST_MS))
def test_a_stamp_that_is_written_and_read_is_the_same_millisecond(moment_ms):
    assert to_ms(datetime.fromisoformat(to_rfc3339(moment_ms))) == moment_ms


def test_a_stamp_is_in_utc_with_z_and_has_a_fraction_only_where_there_is_one():
    assert to_rfc3339(0) == "1970-01-01T00:00:00Z"
    assert to_rfc3339(1_500) == "1970-01-01T00:00:01.500Z"


def test_an_offset_is_taken_off():
    plus_two = timezone(timedelta(hours=2))
    assert to_ms(datetime(1970, 1, 1, 2, tzinfo=plus_two)) == 0
    assert to_ms(datetime(1970, 1, 1, tzinfo=UTC)) == 0


@pytest.mark.parametrize("name", ["Europe/Madrid", "UTC"])
def test_a_zone_of_the_database_is_known(name):
    assert is_time_zone(name)


@pytest.mark.parametrize("name", ["Mars/Olympus", "../etc/passwd", "Europe", "/etc", "a\x00b"])
def test_a_name_that_is_no_zone_is_not_known_and_opens_no_file(name):
    assert not is_time_zone(name)
