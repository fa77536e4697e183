"""Candidates of a future sample against their definitions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model import lags
from model.config import COPY_CANDIDATES as CANDIDATES
from model.copies import Past, candidates

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def past_of(
    scaled: torch.Tensor,
    *,
    step_ms: int = HOUR_MS,
    ahead: int = 8,
    context: int = 48,
    event_hours: Sequence[int] = (),
    sunday_days: Sequence[int] | None = None,
) -> Past:
    """What candidates are taken from, of (B, K, T); event hours are counted from the origin."""
    steps = min(context, scaled.shape[-1])
    steps_in_all = scaled.shape[-1]
    last, day = steps_in_all + ahead, lags.period_steps(DAY_MS, step_ms)
    share = torch.zeros(len(scaled), steps + ahead)
    share[:, [steps + hour for hour in event_hours]] = 1
    sundays = torch.zeros(ahead) if sunday_days is None else torch.tensor(sunday_days)
    return Past(
        scaled=scaled,
        smooth=scaled,
        month=None if day is None else lags.lagged(scaled, steps_in_all, last, day, 28),
        zero=torch.full(scaled.shape[:2], -2.0),
        context_steps=steps,
        event_share=share,
        sunday_days=sundays.long()[None].expand(len(scaled), -1),
        step_ms=step_ms,
        ahead=ahead,
    )


def found(series: np.ndarray, **how):
    """Candidates (M,) by name of one series (T,), NaN where they are unknown."""
    scaled = torch.from_numpy(np.asarray(series, dtype=np.float32))[None, None]
    copies = candidates(past_of(scaled, **how), CANDIDATES)
    values = torch.where(copies.known, copies.values, torch.nan)[0, 0].numpy()
    return dict(zip(CANDIDATES, values.T, strict=True))


def weeks(count: int) -> np.ndarray:
    """Hours that count up, so that a value tells when it was seen."""
    return np.arange(count * 7 * 24, dtype=np.float32)


def test_every_candidate_has_a_name_and_unknown_ones_are_zero():
    scaled = torch.full((2, 3, 40), torch.nan)
    copies = candidates(past_of(scaled, ahead=5), CANDIDATES)
    assert copies.values.shape == copies.known.shape == (2, 3, 5, len(CANDIDATES))
    assert torch.isfinite(copies.values).all()
    assert (copies.values[~copies.known] == 0).all()


def test_lags_are_one_day_and_one_week_before_each_sample():
    series = weeks(2)
    ahead = np.arange(8)
    np.testing.assert_array_equal(found(series)["day_lag"], len(series) - 24 + ahead)
    np.testing.assert_array_equal(found(series)["week_lag"], len(series) - 168 + ahead)


def test_means_are_of_a_week_of_days_of_four_weeks_and_of_four_weeks_of_days():
    series = weeks(6)
    first = len(series)
    copies = found(series)
    assert copies["day_mean"][0] == pytest.approx(first - 24 * np.arange(1, 8).mean())
    assert copies["week_mean"][0] == pytest.approx(first - 168 * np.arange(1, 5).mean())
    assert copies["month_mean"][0] == pytest.approx(first - 24 * np.arange(1, 29).mean())


def test_medians_are_those_of_the_same_repeats():
    series = weeks(6)
    first = len(series)
    series[-24] = 1e6  # a burst, a day before the first future sample
    copies = found(series)
    assert copies["day_median"][0] == first - 24 * 4
    assert copies["week_median"][0] == first - 168 * 2.5
    assert copies["month_median"][0] == first - 24 * 14.5
    series[-24] = np.nan
    assert found(series)["day_median"][0] == first - 24 * 4.5


def test_means_are_of_what_was_seen():
    series = weeks(3)
    series[-24] = np.nan  # a day before the first future sample
    copies = found(series)
    assert np.isnan(copies["day_lag"][0])
    assert copies["day_mean"][0] == pytest.approx(len(series) - 24 * np.arange(2, 8).mean())


def test_a_network_that_grew_has_its_weekly_mean_lifted():
    daily = np.tile(np.sin(np.arange(24) / 4), 28)
    series = daily + 0.01 * np.arange(28 * 24)
    copies = found(series, ahead=24)
    lifted = copies["levelled_week_mean"] - copies["week_mean"]
    np.testing.assert_allclose(lifted, 0.01 * (14 - 3.5) * 24, rtol=1e-3)


def test_flat_candidates_are_the_newest_sample_recent_means_and_zero():
    series = np.arange(400, dtype=np.float32)
    series[-3:] = np.nan
    copies = found(series, context=300)
    assert set(copies["last"]) == {396}
    assert copies["mean_of_16"][0] == pytest.approx(np.arange(384, 397).mean())
    assert copies["mean_of_64"][0] == pytest.approx(np.arange(336, 397).mean())
    assert copies["mean_of_256"][0] == pytest.approx(np.arange(144, 397).mean())
    assert set(copies["zero"]) == {-2}


def test_a_day_is_no_season_of_days_and_a_week_none_of_weeks():
    daily = found(np.arange(60), step_ms=DAY_MS)
    assert np.isnan(daily["day_lag"]).all()
    np.testing.assert_array_equal(daily["week_lag"], [53, 54, 55, 56, 57, 58, 59, 53])
    weekly = found(np.arange(60), step_ms=7 * DAY_MS)
    assert np.isnan(weekly["week_lag"]).all()
    assert np.isnan(weekly["levelled_week_mean"]).all()
    assert set(weekly["last"]) == {59}


def test_a_holiday_starts_from_the_last_sundays_at_the_same_time_of_day():
    series = weeks(6)
    first = len(series)
    # Three hours of a Wednesday, then a Sunday itself, then no holiday.
    copies = found(series, ahead=5, sunday_days=[3, 3, 3, 7, 0])
    back = 24 * 3 + 168 * np.arange(4)
    assert copies["holiday"][1] == pytest.approx(first + 1 - back.mean())
    assert copies["holiday"][3] == pytest.approx(first + 3 - (24 * 7 + 168 * np.arange(4)).mean())
    assert np.isnan(copies["holiday"][4])


def test_sundays_before_the_history_are_not_looked_for():
    series = weeks(1)[:100]
    copies = found(series, sunday_days=[3] * 8)
    np.testing.assert_allclose(copies["holiday"], 100 - 72 + np.arange(8))
    assert np.isnan(found(series, sunday_days=[6] * 8)["holiday"]).all()


def test_an_event_starts_from_what_the_last_ones_added_to_the_usual():
    day = np.tile(np.arange(24.0), 28)
    series = day.copy()
    for hours_back in (24 * 3 - 5, 24 * 5 - 5):
        series[len(series) - hours_back] += 7
    hours = [5 - 24 * 3, 5 - 24 * 5, 5]
    copies = found(series, context=24 * 14, event_hours=hours)
    assert copies["event"][5] == pytest.approx(5 + 7)
    assert np.isnan(np.delete(copies["event"], 5)).all()


def test_an_event_that_none_came_before_starts_from_nothing_of_its_own():
    assert np.isnan(found(weeks(4), context=24 * 14, event_hours=[5])["event"]).all()
    assert np.isnan(found(weeks(4), context=24 * 14, event_hours=[-5])["event"]).all()


def test_only_the_candidates_asked_for_are_given_in_their_order():
    scaled = torch.from_numpy(weeks(2))[None, None]
    copies = candidates(past_of(scaled), ("week_lag", "last"))
    assert copies.values[0, 0, 0].tolist() == [168, 335]


def test_nothing_seen_leaves_zeros_to_start_from():
    copies = found(np.full(80, np.nan))
    assert set(copies["last"]) == set(copies["mean_of_64"]) == {0}
    assert np.isnan(copies["day_lag"]).all()
    assert np.isnan(copies["levelled_week_mean"]).all()


@given(
    steps=st.integers(1, 400), ahead=st.integers(1, 60), gaps=st.floats(0, 1), seed=st.integers(0)
)
def test_candidates_lie_within_what_was_seen(steps, ahead, gaps, seed):
    rng = np.random.default_rng(seed)
    series = rng.normal(size=steps)
    series[rng.random(steps) < gaps] = np.nan
    copies = found(series, ahead=ahead)
    for name in set(CANDIDATES) - {"zero", "levelled_week_mean", "event"}:
        values = copies[name][np.isfinite(copies[name])]
        low, high = np.nanmin([*series, 0.0]), np.nanmax([*series, 0.0])
        assert ((values >= low - 1e-5) & (values <= high + 1e-5)).all()
