"""Series that are hardly series, course by course."""

from __future__ import annotations

import numpy as np
import pytest

from training.synthetic.degenerate import degenerate
from training.synthetic.timing import HOUR_MS, Clock, Regime


@pytest.fixture(scope="module")
def series() -> np.ndarray:
    clock = Clock(Regime.HOUR, HOUR_MS, np.zeros(600, dtype=np.int64), 400)
    return degenerate(np.random.default_rng(0), clock, held_out=False)


def test_some_hold_a_few_levels_for_long(series):
    levels = np.array([len(np.unique(row)) for row in series])
    jumps = (np.diff(series, axis=1) != 0.0).sum(axis=1)
    assert (((levels == 2) | (levels == 3)) & (jumps > 0) & (jumps < 40)).mean() > 0.05


def test_some_are_available_nearly_always(series):
    full = (series == 1.0).mean(axis=1)
    assert ((full > 0.8) & (full < 1.0)).mean() > 0.08


def test_some_rise_and_reset(series):
    moves = np.diff(series.astype(np.float64), axis=1)
    resets = (moves < -0.8).mean(axis=1)
    rises = (moves > 0.0).mean(axis=1)
    assert ((resets > 0.0) & (resets < 0.2) & (rises > 0.6)).mean() > 0.03


def test_same_seed_gives_the_same_series():
    clock = Clock(Regime.HOUR, HOUR_MS, np.zeros(50, dtype=np.int64), 60)
    first, second = (degenerate(np.random.default_rng(4), clock, held_out=False) for _ in "ab")
    assert first.tobytes() == second.tobytes()
