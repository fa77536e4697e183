"""What is taken away from contexts: always the same, and as much as is said."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.accuracy.damage import hole_steps, last_steps, with_gaps, with_late_end


@pytest.mark.parametrize(("steps", "hole"), [(672, 24), (720, 24), (60, 6), (9, 0)])
def test_a_hole_is_a_day_of_hours_or_a_tenth_of_the_context(steps, hole):
    assert hole_steps(steps) == hole


def test_a_fifth_is_missing_at_random_and_a_hole_lies_before_the_last_tenth():
    gaps = np.isnan(with_gaps(np.ones((400, 60))))
    assert gaps[:, 48:54].all()
    others = np.delete(gaps, np.s_[48:54], axis=1)
    assert others.mean() == pytest.approx(0.2, abs=0.01)
    assert others.any(axis=0).all()


def test_the_same_contexts_lose_the_same_samples():
    contexts = np.random.default_rng(0).normal(size=(5, 100))
    np.testing.assert_array_equal(with_gaps(contexts), with_gaps(contexts))


def test_what_stays_is_unchanged_and_the_given_array_too():
    contexts = np.arange(300.0).reshape(3, 100)
    gaps = with_gaps(contexts)
    np.testing.assert_array_equal(gaps[~np.isnan(gaps)], contexts[~np.isnan(gaps)])
    assert not np.isnan(contexts).any()


def test_a_late_end_lacks_the_newest_samples_only():
    late = np.isnan(with_late_end(np.ones((2, 60))))
    assert late[:, 54:].all()
    assert not late[:, :54].any()


def test_a_short_history_is_the_end_of_a_context():
    np.testing.assert_array_equal(last_steps(np.arange(8.0).reshape(2, 4), 2), [[2, 3], [6, 7]])
