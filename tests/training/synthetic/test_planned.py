"""What is planned for synthetic cells: days and hours as stated, and what of them is told."""

from __future__ import annotations

import numpy as np
import pytest

from training.synthetic.planned import DAYS_BEFORE, Planned, draw_planned
from training.synthetic.timing import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
    WEEK_MS,
    Regime,
    draw_starts,
)

CELLS = 2_000


def _planned(
    regime: Regime = Regime.HOUR, step_ms: int = HOUR_MS, cells: int = CELLS, length: int = 24 * 60
) -> Planned:
    rng = np.random.default_rng(5)
    return draw_planned(rng, regime, step_ms, draw_starts(rng, cells, step_ms), length)


def _holiday_ahead(horizon: int) -> tuple[np.ndarray, np.ndarray]:
    """Which cells have a holiday on the days of the last 24 of 720 hours, told and at all."""
    rng = np.random.default_rng(5)
    starts = draw_starts(rng, CELLS, HOUR_MS)
    planned = draw_planned(rng, Regime.HOUR, HOUR_MS, starts, 720, horizon)
    hours = starts[:, None] + HOUR_MS * np.arange(720 - 24, 720)
    column = hours // DAY_MS - planned.first_day[:, None]
    ahead = np.asarray(np.take_along_axis(planned.holidays, column, axis=1).any(axis=1))
    return np.asarray(ahead & planned.told_holidays.any(axis=1)), ahead


@pytest.fixture(scope="module")
def hourly() -> Planned:
    return _planned()


def test_cells_have_no_holidays_or_a_few_to_some_dozens_a_year():
    daily = _planned(Regime.DAY, DAY_MS, length=3 * 365)
    a_year = daily.holidays.sum(axis=1) / 3
    keep_some = a_year > 0
    assert 0.4 < keep_some.mean() < 0.85
    assert 3 < np.median(a_year[keep_some]) < 20
    assert a_year.max() < 60


def test_most_cells_but_not_all_tell_what_is_planned(hourly):
    has_days, has_hours = hourly.holidays.any(axis=1), hourly.event_load.any(axis=1)
    tell_days, tell_hours = hourly.told_holidays.any(axis=1), hourly.told_events.any(axis=1)
    assert 0.5 < (tell_days & has_days).sum() / has_days.sum() < 0.9
    assert 0.5 < (tell_hours & has_hours).sum() / has_hours.sum() < 0.9


def test_what_is_told_is_the_truth_and_the_whole_truth(hourly):
    told = hourly.told_holidays.any(axis=1)
    np.testing.assert_array_equal(hourly.told_holidays[told], hourly.holidays[told])
    # An event that is told has load while it lasts, and a cell that tells one tells all.
    assert (hourly.event_load[hourly.told_events > 0] > 0).all()
    telling = hourly.told_events.any(axis=1)
    strong = hourly.event_load[telling] > 0.5
    near = _dilated(hourly.told_events[telling] > 0)
    assert (near | ~strong).all()


def _dilated(flags: np.ndarray) -> np.ndarray:
    """The same and a sample on either side."""
    near = flags.copy()
    near[:, 1:] |= flags[:, :-1]
    near[:, :-1] |= flags[:, 1:]
    return near


def test_a_venue_has_an_event_now_and_then(hourly):
    venues = hourly.event_load.any(axis=1)
    assert 0.05 < venues.mean() < 0.5
    lasting = hourly.told_events > 0.5
    by_day = lasting.reshape(CELLS, 60, 24).any(axis=2)[lasting.any(axis=1)]
    assert 0.03 < by_day.mean() < 0.4
    assert by_day.mean(axis=1).max() < 0.75


def test_events_last_one_to_five_hours_and_begin_by_day():
    minutes = _planned(Regime.MINUTE, 10 * MINUTE_MS, length=144 * 7)
    flags = np.pad(minutes.told_events > 0.5, ((0, 0), (1, 1)))
    edges = np.diff(flags.astype(np.int8), axis=1)
    begin, end = np.argwhere(edges == 1), np.argwhere(edges == -1)
    inside = (begin[:, 1] > 0) & (end[:, 1] < 144 * 7)
    hours = (end - begin)[inside, 1] / 6
    assert 0.9 < hours.min() < 2
    assert 3.5 < np.percentile(hours, 90) < 5.2
    whole = (minutes.told_events == 0) | (minutes.told_events == 1)
    assert whole.mean() > 0.9  # the others are shares, where an event begins or ends
    assert minutes.told_events.min() >= 0
    assert minutes.told_events.max() <= 1


@pytest.mark.parametrize(
    ("regime", "step_ms"), [(Regime.SECOND, SECOND_MS), (Regime.DAY, DAY_MS), (Regime.DAY, WEEK_MS)]
)
def test_events_are_of_hours_and_minutes_only(regime, step_ms):
    planned = _planned(regime, step_ms, cells=50, length=200)
    assert not planned.event_load.any()
    assert not planned.told_events.any()


def test_days_around_the_samples_have_holidays_too():
    starts = np.array([20_000 * DAY_MS, 20_000 * DAY_MS + 23 * HOUR_MS])
    planned = draw_planned(np.random.default_rng(0), Regime.HOUR, HOUR_MS, starts, 48)
    assert planned.first_day.tolist() == [20_000 - DAYS_BEFORE] * 2
    last_day = (starts + 48 * HOUR_MS) // DAY_MS
    assert (planned.first_day + planned.holidays.shape[1] > last_day).all()
    assert DAYS_BEFORE > 7


def test_a_holiday_that_is_told_is_often_ahead_and_one_that_is_not_told_never_oftener():
    (told, ahead), (told_alone, ahead_alone) = _holiday_ahead(24), _holiday_ahead(0)
    assert told.mean() > 0.12
    assert told_alone.mean() < 0.05
    untold, untold_alone = (ahead & ~told).mean(), (ahead_alone & ~told_alone).mean()
    assert untold == pytest.approx(untold_alone, abs=0.01)


def test_a_day_is_asked_by_its_number():
    holidays = np.zeros((2, 20), dtype=np.bool_)
    holidays[1, [3, 11]] = True
    nothing = np.zeros((2, 5), dtype=np.float32)
    first_day = np.array([100, 200])
    planned = Planned(first_day, holidays, nothing, holidays, nothing)
    days = np.array([[203, 204], [210, 211]])
    assert planned.holiday_on(1, days).tolist() == [[True, False], [False, True]]
    assert not planned.holiday_on(0, days - 100).any()


def test_rows_taken_keep_all_that_is_theirs(hourly):
    rows = np.array([7, 3])
    taken = hourly.take(rows)
    for name in ("first_day", "holidays", "event_load", "told_holidays", "told_events"):
        np.testing.assert_array_equal(getattr(taken, name), getattr(hourly, name)[rows])
