"""Holidays follow the local day of the cell's country, events cover the samples that they last."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpi.window import PlannedEvent
from model.errors import ModelError
from model.planned import event_shares, input_width, planned_inputs, planned_width

MINUTE_MS = 60_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
PATCH = 16


def at(year: int, month: int, day: int, hour: int = 0) -> int:
    return int(datetime(year, month, day, hour, tzinfo=UTC).timestamp() * 1000)


def inputs(start_ms: int, patches: int = 1, step_ms: int = HOUR_MS, **known) -> np.ndarray:
    """Planned inputs (N, W)."""
    found = planned_inputs(start_ms, patches, PATCH, step_ms, **known)
    assert found.shape == (patches, planned_width(PATCH))
    assert found.dtype == np.float32
    return found


def of_samples(planned: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shares of events and flags of holidays, sample by sample."""
    return planned[:, :PATCH].reshape(-1), planned[:, PATCH : 2 * PATCH].reshape(-1)


def test_a_holiday_lasts_from_midnight_to_midnight_of_the_local_clock():
    # In Madrid, 2026-10-12 begins at 22:00 UTC on the 11th, and in winter time at 23:00.
    _, summer = of_samples(inputs(at(2026, 10, 11, 20), 2, country="ES", time_zone="Europe/Madrid"))
    np.testing.assert_array_equal(np.flatnonzero(summer), 2 + np.arange(24))
    _, winter = of_samples(inputs(at(2026, 12, 7, 20), 2, country="ES", time_zone="Europe/Madrid"))
    np.testing.assert_array_equal(np.flatnonzero(winter), 3 + np.arange(24))


@pytest.mark.parametrize(
    ("country", "zone", "midnight_ms", "hours"),
    [
        ("AU", "Australia/Sydney", at(2027, 1, 25, 13), 24),
        ("CL", "America/Santiago", at(2026, 9, 18, 3), 24),
        ("GR", "Europe/Athens", at(2013, 3, 24, 22), 24),
        ("MT", "Europe/Malta", at(2013, 3, 30, 23), 23),  # Freedom Day, when the clock jumped
    ],
)
def test_holidays_follow_the_clock_of_any_zone_and_its_jumps(country, zone, midnight_ms, hours):
    _, flags = of_samples(inputs(midnight_ms - 8 * HOUR_MS, 3, country=country, time_zone=zone))
    seen = np.flatnonzero(flags)
    assert seen[0] == 8
    np.testing.assert_array_equal(flags[8 : 8 + hours], 1)
    assert flags[8 + hours] in (0, 1)


def test_the_ends_of_a_patch_also_say_whether_their_lags_were_holidays():
    # 2027-01-06 is Epiphany. A patch of hours from the 7th at 08:00 UTC ends at 23:00 that day.
    (after,) = inputs(at(2027, 1, 7, 8), country="ES")
    assert after[2 * PATCH : input_width(PATCH)].tolist() == [1, 1, 0, 0]
    (week_later,) = inputs(at(2027, 1, 13, 8), country="ES")
    assert week_later[2 * PATCH : input_width(PATCH)].tolist() == [0, 0, 1, 1]
    (into_next,) = inputs(at(2027, 1, 7, 12), country="ES")  # its last sample is on the 8th
    assert into_next[2 * PATCH : input_width(PATCH)].tolist() == [1, 0, 0, 1]


def test_a_holiday_tells_how_many_days_back_the_last_sunday_is():
    # Epiphany of 2027 is a Wednesday, German Unity Day of that year a Sunday.
    (epiphany,) = inputs(at(2027, 1, 5, 17), country="ES")
    assert epiphany[input_width(PATCH) :].tolist() == [0] * 7 + [3] * 9
    (sunday,) = inputs(at(2027, 10, 3, 2), country="DE")
    assert set(sunday[input_width(PATCH) :]) == {7}
    (usual,) = inputs(at(2027, 1, 12, 2), country="ES")
    assert not usual[input_width(PATCH) :].any()


def test_daily_samples_are_flagged_by_their_day():
    _, flags = of_samples(inputs(at(2025, 12, 24), 1, DAY_MS, country="ES"))
    assert np.flatnonzero(flags).tolist() == [1, 8, 13]  # Christmas, New Year, Epiphany


@pytest.mark.parametrize("step_ms", [100, 1_000, 59_999, DAY_MS + 1, 7 * DAY_MS])
def test_below_a_minute_and_above_a_day_nothing_is_planned(step_ms):
    start_ms = at(2026, 1, 1)
    events = [PlannedEvent(start_ms, start_ms + 1_000 * step_ms)]
    assert not inputs(start_ms, 3, step_ms, country="ES", events=events).any()


@pytest.mark.parametrize("step_ms", [MINUTE_MS, DAY_MS])
def test_a_minute_and_a_day_are_steps_with_plans(step_ms):
    start_ms = at(2026, 1, 1)
    planned = inputs(start_ms, 1, step_ms, country="ES", events=[PlannedEvent(0, start_ms + 1)])
    assert planned[0, 0] > 0
    assert planned[0, PATCH] == 1


def test_an_unknown_country_is_refused():
    with pytest.raises(ModelError, match="expected a country such as ES or ES-CT"):
        inputs(at(2026, 1, 1), country="XX")


def test_without_country_and_events_nothing_is_planned():
    assert not inputs(at(2026, 1, 1), 3).any()


def test_an_event_covers_samples_by_the_time_that_it_lasts():
    start_ms = at(2026, 5, 5)
    event = PlannedEvent(start_ms + 90 * MINUTE_MS, start_ms + 255 * MINUTE_MS)
    shares, flags = of_samples(inputs(start_ms, events=[event]))
    np.testing.assert_allclose(shares[:6], [0, 0.5, 1, 1, 0.25, 0])
    assert not shares[6:].any()
    assert not flags.any()


def test_an_event_shorter_than_a_sample_is_seen_in_part():
    start_ms = at(2026, 5, 5)
    event = PlannedEvent(start_ms + 10 * MINUTE_MS, start_ms + 16 * MINUTE_MS)
    shares, _ = of_samples(inputs(start_ms, events=[event]))
    assert shares[0] == pytest.approx(0.1)
    assert not shares[1:].any()


def test_events_at_once_cover_a_sample_no_more_than_whole():
    events = [PlannedEvent(0, HOUR_MS), PlannedEvent(HOUR_MS // 2, HOUR_MS)]
    assert event_shares(np.array([0, HOUR_MS]), HOUR_MS, events).tolist() == [1, 0]
    twice = [PlannedEvent(0, HOUR_MS // 2)] * 2 + [PlannedEvent(HOUR_MS // 4, HOUR_MS // 2)]
    assert event_shares(np.array([0]), HOUR_MS, twice).tolist() == [0.5]


@given(
    spans=st.lists(st.tuples(st.integers(-50, 250), st.integers(0, 60)), max_size=12),
    step=st.integers(1, 30),
)
def test_shares_are_those_of_a_count_of_milliseconds(spans, step):
    events = [PlannedEvent(start, start + length) for start, length in spans]
    begins_ms = step * np.arange(200 // step)
    under = np.array([any(e.start_ms <= ms < e.end_ms for e in events) for ms in range(200)])
    expected = [under[begin : begin + step].mean() for begin in begins_ms]
    np.testing.assert_allclose(event_shares(begins_ms, step, events), expected, atol=1e-6)


def test_an_event_far_away_or_without_length_covers_nothing():
    start_ms = at(2026, 5, 5)
    events = [PlannedEvent(0, 1), PlannedEvent(2**52, 2**53), PlannedEvent(start_ms, start_ms)]
    assert not inputs(start_ms, events=events).any()


@given(
    first=st.integers(-(10**6), 10**6),
    span=st.integers(0, 10**7),
    step_ms=st.integers(MINUTE_MS, HOUR_MS),
)
def test_the_time_covered_is_the_time_of_the_event_within_the_samples(first, span, step_ms):
    begins_ms = step_ms * np.arange(64)
    shares = event_shares(begins_ms, step_ms, [PlannedEvent(first, first + span)])
    inside = max(0, min(first + span, 64 * step_ms) - max(first, 0))
    assert shares.sum() * step_ms == pytest.approx(inside, rel=1e-4, abs=1)
    assert ((shares >= 0) & (shares <= 1)).all()


@given(offset=st.integers(0, 400), patches=st.integers(1, 5))
def test_a_longer_run_of_patches_begins_with_the_shorter_one(offset, patches):
    start_ms = at(2026, 4, 1) + offset * HOUR_MS
    known: dict[str, Any] = {
        "country": "ES-CT",
        "time_zone": "Europe/Madrid",
        "events": [PlannedEvent(start_ms, start_ms + 30 * HOUR_MS)],
    }
    np.testing.assert_array_equal(
        inputs(start_ms, patches, **known), inputs(start_ms, patches + 2, **known)[:patches]
    )
