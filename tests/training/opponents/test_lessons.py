"""Training windows end inside what may be learnt from, and their rows fit their targets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from training.opponents.fallback import Place
from training.opponents.lessons import (
    Lesson,
    contexts,
    lessons,
    level_floor,
    sample,
    training_rows,
)
from training.opponents.lightgbm_tuned import split_in_time
from training.opponents.rows import RowPlan


def test_no_target_lies_beyond_the_end(make_window):
    place = Place(make_window(steps=100), 0)
    found = lessons([place], 12, 672, 5)
    assert max(lesson.origin for lesson in found) == 100 - 12
    assert min(lesson.origin for lesson in found) >= 10
    assert all(len(lesson.target(12)) == 12 for lesson in found)


def test_windows_without_history_or_target_do_not_teach(make_window):
    window = make_window(steps=100)
    window.values[:, :50] = np.nan
    window.values[:, 80:] = np.nan
    found = lessons([Place(window, 0)], 12, 672, 1)
    assert {lesson.origin for lesson in found} == set(range(60, 80))


@pytest.mark.parametrize("steps", [0, 3, 12])
def test_a_history_too_short_has_no_windows(make_window, steps):
    assert lessons([Place(make_window(steps=steps), 0)], 12, 672, 1) == []


def test_a_sample_is_the_same_for_the_same_seed(make_window):
    found = lessons([Place(make_window(), 0)], 12, 672, 1)
    assert sample(found, 20, 1) == sample(found, 20, 1)
    assert len(sample(found, 20, 1)) == 20
    assert sample(found, 10_000, 1) == found


def test_contexts_end_at_the_origin(make_window):
    place = Place(make_window(steps=100), 0)
    found = contexts([Lesson(place, 100), Lesson(place, 30)], 64)
    np.testing.assert_array_equal(found[0], place.series[36:])
    np.testing.assert_array_equal(found[1, 34:], place.series[:30])
    assert np.isnan(found[1, :34]).all()


def test_rows_and_targets_belong_together(make_window):
    quiet, loud = make_window(0, steps=120), make_window(1, steps=120)
    loud = replace(loud, values=loud.values * 1000, time_zone="Asia/Tokyo")
    loud.values[0, 60] = np.nan
    plan = RowPlan(quiet.step_ms, 6)
    found = lessons([Place(quiet, 0), Place(loud, 0)], 6, plan.context_steps, 3)
    floor = level_floor(found, 6)
    features, targets = training_rows(plan, found, floor)
    count = sum(np.count_nonzero(~np.isnan(lesson.target(6))) for lesson in found)
    assert features.shape == (count, plan.features)
    assert not np.isnan(targets).any()
    recovered = np.sort(targets * np.exp(features[:, -1]))
    expected = np.sort(np.concatenate([lesson.target(6) for lesson in found]))
    np.testing.assert_allclose(recovered, expected[~np.isnan(expected)], rtol=1e-3)


def test_what_judges_begins_after_all_that_teaches_has_ended(make_window):
    places = [Place(make_window(seed, steps=200 + 50 * seed), 0) for seed in range(2)]
    found = lessons(places, 12, 672, 1)
    teaching, judging = split_in_time(found, 12)
    assert teaching
    assert judging
    for place in places:
        last_taught = max(x.origin + 12 for x in teaching if x.place is place)
        assert last_taught <= min(x.origin for x in judging if x.place is place)
