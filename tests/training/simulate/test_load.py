"""Offered load: days, weeks, events, bursts and growth."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from training.simulate.cell import draw_gnbs
from training.simulate.load import Instants, day_shape, event_load, offered_load
from training.simulate.local_time import local_time
from training.simulate.profiles import PROFILES

STEP_MS = 900_000
MONDAY_MS = int(datetime(2026, 11, 2, tzinfo=UTC).timestamp() * 1000)
PER_DAY = 96


def instants(days: float, start_ms: int = MONDAY_MS, zone: str = "UTC") -> Instants:
    first = start_ms // STEP_MS
    time_ms = (first + np.arange(int(days * PER_DAY), dtype=np.int64)) * STEP_MS + STEP_MS // 2
    return Instants(first, time_ms, local_time(time_ms, ZoneInfo(zone)))


def cell(profile: str):
    return draw_gnbs(7, 1, 1, [PROFILES[profile]])[0].cells[0]


@pytest.mark.parametrize("name", PROFILES)
def test_a_usual_day_is_quiet_at_night_and_peaks_at_about_1(name):
    shape = day_shape(PROFILES[name], instants(7).local).reshape(7, PER_DAY)
    assert 0.9 < shape.max() < 1.25
    assert (shape[:, 12:20].mean(axis=1) < 0.45 * shape.max(axis=1)).all()
    assert shape.min() >= PROFILES[name].floor


@pytest.mark.parametrize("name", PROFILES)
def test_a_usual_week_has_no_jump_at_midnight(name):
    shape = day_shape(PROFILES[name], instants(14).local)
    steps = np.abs(np.diff(shape))
    assert steps[PER_DAY - 1 :: PER_DAY].max() < 0.07
    assert steps.max() < 0.15


def test_business_cells_rest_at_the_weekend_and_stadiums_do_not():
    shape = day_shape(PROFILES["business"], instants(7).local).reshape(7, PER_DAY)
    assert shape[5:].max() < 0.4 * shape[:5].max()
    stadium = day_shape(PROFILES["stadium"], instants(7).local).reshape(7, PER_DAY)
    assert stadium[5:].max() > 0.9 * stadium[:5].max()


def test_days_follow_the_local_clock():
    utc = day_shape(PROFILES["business"], instants(1).local)
    tokyo = day_shape(PROFILES["business"], instants(1, zone="Asia/Tokyo").local)
    assert (np.argmax(utc) - np.argmax(tokyo)) % PER_DAY == 9 * 4


def test_events_raise_the_load_of_stadiums_only_and_end_sharply():
    year = instants(364)
    stadium, rural = cell("stadium"), cell("rural")
    assert not event_load(7, rural, year.local).any()
    load = event_load(7, stadium, year.local).reshape(364, PER_DAY)
    # Hours 12 to 24 tell event days apart: what is left after midnight belongs to the day before.
    is_event = load[:, 48:].max(axis=1) > 0.3
    is_weekend = np.arange(364) % 7 > 4
    assert 0.3 < is_event[is_weekend].mean() < 0.6
    assert 0.05 < is_event[~is_weekend].mean() < 0.2
    falls = -np.diff(load.ravel())
    assert falls.max() > np.diff(load.ravel()).max()


def test_an_event_goes_on_after_midnight():
    profile = PROFILES["stadium"]
    assert profile.event is not None
    late = replace(
        profile,
        event=replace(
            profile.event,
            weekday_probability=1.0,
            start_hour=(22.0, 22.5),
            length_hours=(3.0, 3.0),
        ),
    )
    night = replace(cell("stadium"), profile=late)
    load = event_load(7, night, instants(3).local).reshape(3, PER_DAY)
    assert load[1, 0] > 0.4
    assert load[1, 40] < 0.01


def test_bursts_happen_as_often_as_the_profile_says():
    calm = replace(PROFILES["rural"], bursts_per_day=0.0, noise_ratio=0.0)
    busy = replace(calm, bursts_per_day=1.0, burst_load_ratio=0.5)
    days = instants(200)
    without = offered_load(7, replace(cell("rural"), profile=calm), days)
    extra = offered_load(7, replace(cell("rural"), profile=busy), days) - without
    assert (extra > -1e-12).all()
    begins = ((extra[1:] > 0.1) & (extra[:-1] <= 0.1)).sum()
    assert 120 < begins < 280


def test_load_grows_within_a_year_and_an_upgrade_takes_it_back():
    grown = replace(PROFILES["rural"], growth_per_year=0.5, noise_ratio=0.0, bursts_per_day=0.0)
    one = replace(cell("rural"), profile=grown, upgrade_phase_ratio=0.0)
    monthly = np.array(
        [
            offered_load(7, one, instants(7, MONDAY_MS + m * 28 * 86_400_000)).mean()
            for m in range(27)
        ]
    )
    ratio = monthly[1:] / monthly[:-1]
    assert (ratio > 1).mean() > 0.7
    assert ratio.min() < 0.5


def test_load_stays_within_bounds():
    for name in PROFILES:
        load = offered_load(7, cell(name), instants(120))
        assert load.min() > 0
        assert load.max() <= 4.0


def test_no_instants_give_no_load():
    assert offered_load(7, cell("stadium"), instants(0)).shape == (0,)
