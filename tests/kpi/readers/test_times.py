"""Times and durations as PM sources write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpi.readers.times import (
    file_name_period,
    offset_seconds,
    parse_duration,
    parse_epoch,
    parse_time,
    parse_zone,
    to_text,
)

ZONE = ZoneInfo("Europe/Madrid")
UTC_ZONE = ZoneInfo("UTC")


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2023-05-15T07:00:00+0100", "2023-05-15T06:00:00+00:00"),
        ("2023-05-15T07:00:00+01:00", "2023-05-15T06:00:00+00:00"),
        ("2023-05-15T07:00:00+01", "2023-05-15T06:00:00+00:00"),
        ("2029-03-15T21:00:00.000-05:00:00", "2029-03-16T02:00:00+00:00"),
        ("2023-05-15 07:00:00Z", "2023-05-15T07:00:00+00:00"),
        ("2023-05-15T07:00z", "2023-05-15T07:00:00+00:00"),
        ("20230515T0700+0100", "2023-05-15T06:00:00+00:00"),
        (" 2023-05-15T24:00:00Z ", "2023-05-16T00:00:00+00:00"),
        ("2023-05-15T07:00:00,25Z", "2023-05-15T07:00:00.250+00:00"),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00+00:00"),
        ("1684134000000000", "2023-05-15T07:00:00+00:00"),
    ],
)
def test_liberties_with_iso_8601_are_understood(text: str, expected: str) -> None:
    assert parse_time(text, ZONE) == ms(expected)


def test_stamp_without_offset_is_in_the_given_zone() -> None:
    assert parse_time("2026-07-01T12:00:00", ZONE) == ms("2026-07-01T10:00:00+00:00")
    assert parse_time("2026-01-01T12:00:00", ZONE) == ms("2026-01-01T11:00:00+00:00")


def test_repeated_hour_means_its_first_pass_and_skipped_hour_moves_on() -> None:
    assert parse_time("2026-10-25T02:30:00", ZONE) == ms("2026-10-25T00:30:00+00:00")
    assert parse_time("2026-03-29T02:30:00", ZONE) == ms("2026-03-29T03:30:00+02:00")
    assert offset_seconds(ms("2026-10-25T02:30:00+00:00") // 1000, ZONE, fold=1) == 3600


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ENDTIME",
        "2026-13-01T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-01-01T25:00:00Z",
        "2026-01-01T24:00:01Z",
        "2026-01-01T00:61:00Z",
        "2026-01-01T00:00:00+19:00",
        "99999999999999999999999999",
        "20260101",
        "٢٠٢٦-01-01T00:00:00Z",
        "9" * 500,
    ],
)
def test_what_is_no_time_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_time(text, ZONE)


def test_local_time_at_the_end_of_the_calendar_does_not_overflow() -> None:
    with pytest.raises(ValueError, match="year 1 to 9999"):
        parse_time("9999-12-31T24:00:00", ZONE)


@given(
    st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1)),
    st.integers(min_value=-18 * 60, max_value=18 * 60),
    st.sampled_from(["%z", "colon", "seconds"]),
)
def test_any_offset_in_any_spelling_gives_the_same_time(
    stamp: datetime, minutes: int, spelling: str
) -> None:
    aware = stamp.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    sign, (hours, rest) = "-" if minutes < 0 else "+", divmod(abs(minutes), 60)
    offset = {
        "%z": f"{sign}{hours:02}{rest:02}",
        "colon": f"{sign}{hours:02}:{rest:02}",
        "seconds": f"{sign}{hours:02}:{rest:02}:00",
    }[spelling]
    text = stamp.isoformat(timespec="microseconds") + offset
    expected = (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    wall = (stamp - datetime(1970, 1, 1)) // timedelta(milliseconds=1)
    assert parse_time(text, ZONE) == wall - minutes * 60_000
    assert parse_time(text, ZONE) == expected


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2100, 1, 1)))
def test_text_of_a_time_reads_back(stamp: datetime) -> None:
    whole = stamp.replace(microsecond=0, tzinfo=UTC)
    time_ms = round(whole.timestamp() * 1000)
    assert parse_time(to_text(time_ms), ZONE) == time_ms


@pytest.mark.parametrize("units_per_ms", [1, 1_000, 1_000_000])
@given(st.integers(min_value=631_152_000_000, max_value=4_102_444_799_999))
def test_unit_of_an_epoch_number_follows_from_its_size(units_per_ms: int, time_ms: int) -> None:
    assert parse_epoch(time_ms * units_per_ms) == time_ms


def test_epoch_seconds_may_have_a_fraction() -> None:
    assert parse_epoch(1_684_134_000.25) == 1_684_134_000_250


@pytest.mark.parametrize("number", [0, 151_983, 15_198_378, -1, 10**30, float("nan"), float("inf")])
def test_epoch_that_no_unit_explains_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="between 1990 and 2100"):
        parse_epoch(number)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PT900S", 900_000),
        ("PT15M", 900_000),
        ("PT1H", 3_600_000),
        ("P1D", 86_400_000),
        ("P1W", 7 * 86_400_000),
        ("P1DT1H1M1.5S", 90_061_500),
        ("PT0.25S", 250),
        ("900", 900_000),
    ],
)
def test_durations_are_milliseconds(text: str, expected: int) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    "text", ["", "PT", "PT0S", "P1M", "P1Y", "-PT5M", "x", "PT99999999999999S", f"PT{'9' * 99}S"]
)
def test_duration_that_is_no_period_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_duration(text)


def test_unknown_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="IANA"):
        parse_zone("Mars/Olympus")
    with pytest.raises(ValueError, match="IANA"):
        parse_zone("../etc")


@pytest.mark.parametrize(
    ("name", "start", "end"),
    [
        (
            "A20000626.2315+0200-2330+0200_NODE.json",
            "2000-06-26T23:15:00+02:00",
            "2000-06-26T23:30:00+02:00",
        ),
        (
            "dir/A20230515.0700_0100-0715_0100_N.xml",
            "2023-05-15T07:00:00+01:00",
            "2023-05-15T07:15:00+01:00",
        ),
        (
            "A20181002.0000-1000-0015-1000_5G.xml.gz",
            "2018-10-02T00:00:00-10:00",
            "2018-10-02T00:15:00-10:00",
        ),
        (
            "C20260101.2345+0000-0000+0000_x",
            "2026-01-01T23:45:00+00:00",
            "2026-01-02T00:00:00+00:00",
        ),
        (
            "A20260803.1315+0200-20260803.1330+0200_M",
            "2026-08-03T13:15:00+02:00",
            "2026-08-03T13:30:00+02:00",
        ),
        ("A20220418.1900-1915_x", "2022-04-18T19:00:00+00:00", "2022-04-18T19:15:00+00:00"),
    ],
)
def test_file_name_states_a_period(name: str, start: str, end: str) -> None:
    assert file_name_period(name, UTC_ZONE) == (ms(start), ms(end))


@pytest.mark.parametrize(
    "name",
    ["report.json", "A20261301.0000-0015", "A20260101.9900-0015", "A20260102.0000-20260101.0000"],
)
def test_other_file_names_state_none(name: str) -> None:
    assert file_name_period(name, UTC_ZONE) is None
