from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.kserve.timeseries import Frequency, mean_levels, mean_of


@given(st.floats(-1000, 1000), st.lists(st.floats(0.01, 0.99), min_size=1, unique=True))
def test_the_mean_of_a_certain_value_is_that_value(value, levels):
    values = np.full((2, 3, len(levels)), value, dtype=np.float32)
    np.testing.assert_allclose(mean_of(sorted(levels), values), value, rtol=1e-5, atol=1e-30)


@given(st.floats(-100, 100), st.floats(0.1, 10), st.sampled_from([(0.01, 0.99), (0.05, 0.95)]))
def test_the_mean_of_a_symmetric_distribution_is_its_median(middle, spread, level_range):
    levels = mean_levels(level_range, ())
    bell = NormalDist(middle, spread)
    values = np.array([[[bell.inv_cdf(level) for level in levels]]], dtype=np.float32)
    np.testing.assert_allclose(mean_of(levels, values), middle, atol=1e-3 * spread + 1e-4)


def test_the_mean_of_a_skewed_distribution_is_its_mean_and_not_its_median():
    levels = mean_levels((0.01, 0.99), ())
    uniform_squared = np.array([level**2 for level in levels], dtype=np.float32)
    assert mean_of(levels, uniform_squared) == pytest.approx(1 / 3, abs=0.002)


@given(st.lists(st.floats(-10, 10, width=32), min_size=3, max_size=3))
def test_the_mean_lies_between_the_outermost_quantiles(values):
    ordered = np.sort(np.array(values, dtype=np.float32))
    mean = float(mean_of([0.1, 0.4, 0.9], ordered))
    assert ordered[0] - 1e-5 <= mean <= ordered[-1] + 1e-5


def test_levels_that_were_asked_are_among_those_of_the_mean():
    levels = mean_levels((0.05, 0.95), (0.1, 0.333))
    assert {0.05, 0.1, 0.333, 0.95} <= set(levels)
    assert list(levels) == sorted(set(levels))


@pytest.mark.parametrize(
    ("short", "word", "length"),
    [("S", "second", 1), ("T", "minute", 60), ("H", "hour", 3600), ("D", "day", 86_400)],
)
def test_both_spellings_of_a_frequency_are_of_one_length(short, word, length):
    assert Frequency(short).seconds == Frequency(word).seconds == length


@pytest.mark.parametrize("text", ["month", "M", "quarter", "Q", "year", "Y"])
def test_a_frequency_without_a_fixed_length_has_none(text):
    assert Frequency(text).seconds is None
