"""Day profiles: positive, of mean 1, and of shapes that training and validation do not share."""

from __future__ import annotations

import numpy as np
import pytest

from training.synthetic.profile import (
    GRID,
    HELD_OUT_SHAPES,
    TRAINING_SHAPES,
    ProfileShape,
    day_profiles,
    draw_shapes,
)


@pytest.mark.parametrize("held_out", [False, True])
def test_profiles_are_positive_with_mean_one_and_close_at_midnight(held_out):
    profiles = day_profiles(np.random.default_rng(0), 64, held_out)
    assert profiles.shape == (64, 2, GRID + 1)
    assert (profiles > 0.0).all()
    np.testing.assert_allclose(profiles[:, :, :GRID].mean(axis=2), 1.0, rtol=1e-4)
    np.testing.assert_array_equal(profiles[:, :, 0], profiles[:, :, GRID])


def test_training_never_draws_a_held_out_shape():
    rng = np.random.default_rng(0)
    assert set(draw_shapes(rng, 2_000, held_out=False)) == set(TRAINING_SHAPES)
    assert set(draw_shapes(rng, 2_000, held_out=True)) == set(HELD_OUT_SHAPES)
    assert set(TRAINING_SHAPES) | set(HELD_OUT_SHAPES) == set(ProfileShape)
    assert not set(TRAINING_SHAPES) & set(HELD_OUT_SHAPES)


def test_nights_are_quieter_than_days_on_average():
    working = day_profiles(np.random.default_rng(0), 400, held_out=False)[:, 0]
    per_hour = GRID // 24
    night = working[:, 2 * per_hour : 5 * per_hour].mean(axis=1)
    day = working[:, 9 * per_hour : 21 * per_hour].mean(axis=1)
    assert np.median(night) < 0.65
    assert np.median(day) > 1.1


def test_weekends_differ_for_most_cells():
    profiles = day_profiles(np.random.default_rng(0), 400, held_out=False)
    differ = np.abs(profiles[:, 0] - profiles[:, 1]).max(axis=1) > 0.02
    assert 0.5 < differ.mean() < 0.95
