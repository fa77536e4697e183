"""Quantiles of the recent past are those of its numbers, and what is old is forgotten."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.recent import Recent


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60), st.floats(0, 1))
def test_the_quantile_is_that_of_the_newest_numbers(numbers, level):
    recent = Recent(20, math.inf)
    for number in numbers:
        recent.append(number, 0.0)
    assert len(recent) == min(len(numbers), 20)
    assert recent.quantile(level) == pytest.approx(np.quantile(numbers[-20:], level), abs=1e-6)


def test_of_no_numbers_the_quantile_is_zero():
    assert Recent(3, 1.0).quantile(0.9) == 0


def test_old_numbers_are_forgotten_but_for_the_least():
    recent = Recent(10, most_s=1.0, least=2)
    for number, now_s in ((9.0, 0.0), (8.0, 0.1), (1.0, 5.0)):
        recent.append(number, now_s)
    assert recent.quantile(1.0) == 8.0
    recent.append(1.0, 5.0)
    assert recent.quantile(1.0) == 1.0
