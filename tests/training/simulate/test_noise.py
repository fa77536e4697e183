"""Keyed randomness: a value depends on its place and on nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.simulate.noise import Stream, normals, slow_normal, smooth_step, uniforms

PLACES = st.integers(-(10**4), 10**7)


@given(
    seed=st.integers(0, 2**63 - 1),
    entity=st.integers(0, 10**5),
    first=PLACES,
    count=st.integers(1, 40),
    width=st.integers(1, 17),
    data=st.data(),
)
def test_variates_do_not_depend_on_where_the_range_begins(seed, entity, first, count, width, data):
    whole = uniforms(seed, Stream.BURST, entity, first, count, width)
    skip = data.draw(st.integers(0, count - 1))
    part = uniforms(seed, Stream.BURST, entity, first + skip, count - skip, width)
    np.testing.assert_array_equal(part, whole[skip:])


@given(first=PLACES, count=st.integers(1, 200))
def test_uniforms_lie_strictly_between_0_and_1(first, count):
    drawn = uniforms(3, Stream.CELL, 1, first, count, 5)
    assert drawn.shape == (count, 5)
    assert (drawn > 0).all()
    assert (drawn < 1).all()


@pytest.mark.parametrize(
    "other",
    [(4, Stream.CELL, 0), (3, Stream.SITE, 0), (3, Stream.CELL, 1)],
    ids=["seed", "stream", "entity"],
)
def test_each_part_of_the_key_gives_other_numbers(other):
    seed, stream, entity = other
    here = uniforms(3, Stream.CELL, 0, 0, 50, 1)
    assert not np.isin(uniforms(seed, stream, entity, 0, 50, 1), here).any()


def test_normals_have_mean_0_deviation_1_and_no_correlation():
    drawn = normals(5, Stream.CELL_PERIOD, 2, 0, 40_000, 3)
    assert np.abs(drawn.mean(axis=0)).max() < 0.02
    assert np.abs(drawn.std(axis=0) - 1).max() < 0.02
    assert np.abs(np.corrcoef(drawn.T) - np.eye(3)).max() < 0.02


def test_slow_noise_is_a_function_of_time_alone():
    times = np.arange(0, 10**7, 60_000, dtype=np.int64)
    whole = slow_normal(1, Stream.RADIO, 0, times, 900_000)
    np.testing.assert_array_equal(slow_normal(1, Stream.RADIO, 0, times[40:], 900_000), whole[40:])


def test_slow_noise_wanders_and_keeps_its_variance_between_knots():
    times = np.arange(0, 4 * 10**9, 10**5, dtype=np.int64)
    values = slow_normal(1, Stream.RADIO, 0, times, 10**6)
    assert np.abs(np.diff(values)).max() < 1.5
    between = values[5::10]
    assert abs(between.std() - 1) < 0.05
    assert abs(values[0::10].std() - 1) < 0.05


def test_slow_noise_of_no_instant_is_empty():
    assert slow_normal(1, Stream.RADIO, 0, np.empty(0, dtype=np.int64), 1000).shape == (0,)


def test_smooth_step_is_flat_outside_and_half_in_the_middle():
    ratio = np.array([-3.0, 0.0, 0.5, 1.0, 9.0])
    np.testing.assert_array_equal(smooth_step(ratio), [0.0, 0.0, 0.5, 1.0, 1.0])
