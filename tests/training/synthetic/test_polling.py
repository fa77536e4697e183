"""Traffic in small pieces: exact zeros, chunks at a pace, polls over decades."""

from __future__ import annotations

import numpy as np
import pytest

from training.synthetic.polling import chunks, polls
from training.synthetic.timing import MINUTE_MS, SECOND_MS, Clock, Regime

ROWS, LENGTH = 300, 800


def _clock(regime: Regime = Regime.SECOND, step_ms: int = SECOND_MS) -> Clock:
    return Clock(regime, step_ms, np.zeros(ROWS, dtype=np.int64), LENGTH)


@pytest.mark.parametrize("generate", [chunks, polls])
@pytest.mark.parametrize(
    ("regime", "step_ms"),
    [(Regime.SECOND, SECOND_MS), (Regime.SECOND, 10 * SECOND_MS), (Regime.MINUTE, MINUTE_MS)],
)
def test_pieces_are_finite_not_negative_and_of_mean_one(generate, regime, step_ms):
    series = generate(np.random.default_rng(0), _clock(regime, step_ms), False)
    assert series.dtype == np.float32
    assert np.isfinite(series).all()
    assert (series >= 0).all()
    mean = series.mean(axis=1, dtype=np.float64)
    np.testing.assert_allclose(mean[mean > 0], 1.0, rtol=1e-3)
    assert (mean > 0).mean() > 0.95


@pytest.mark.parametrize("generate", [chunks, polls])
def test_most_seconds_carry_nothing_at_all(generate):
    series = generate(np.random.default_rng(1), _clock(), False)
    assert np.median((series == 0).mean(axis=1)) > 0.5


@pytest.mark.parametrize("generate", [chunks, polls])
def test_rounding_leaves_no_dust_between_pieces(generate):
    series = generate(np.random.default_rng(2), _clock(), False)
    positive = series[series > 0]
    assert positive.min() > 1e-6


def test_chunks_have_about_one_rate_and_polls_have_sizes_over_decades():
    decades = {}
    for generate in (chunks, polls):
        series = generate(np.random.default_rng(3), _clock(), False)
        busy = np.where(series > 0, np.log10(np.maximum(series, 1e-9)), np.nan)
        low, high = np.nanpercentile(busy, [25, 95], axis=1)
        decades[generate] = high - low
    assert np.median(decades[chunks]) < 0.5
    assert np.median(decades[polls]) > 0.8
    assert np.mean(decades[polls] > 2) > 0.15


def test_chunks_come_at_a_steadier_pace_than_polls():
    spread = []
    for generate in (chunks, polls):
        series = generate(np.random.default_rng(4), _clock(), False)
        spread.append(np.nanmedian([_pace_spread(row) for row in series]))
    assert spread[0] < 0.45
    assert spread[0] < spread[1]


def _pace_spread(row: np.ndarray) -> float:
    """Spread of the time between the begins of pieces, relative to its median."""
    busy = row > 0.5
    begins = np.flatnonzero(busy[1:] & ~busy[:-1])
    gaps = np.diff(begins)
    if len(gaps) < 5:
        return np.nan
    low, middle, high = np.percentile(gaps, [25, 50, 75])
    return float((high - low) / middle)


def test_keep_alives_are_all_alike():
    series = polls(np.random.default_rng(5), _clock(), False)
    repeated = 0
    for row in series:
        small = row[(row > 0) & (row < 0.2)]
        _, counts = np.unique(small, return_counts=True)
        repeated += len(small) > 10 and counts.max(initial=0) > 0.3 * len(small)
    assert 0.3 < repeated / ROWS < 0.75


def test_pieces_last_by_the_clock_in_seconds_and_by_samples_elsewhere():
    second = chunks(np.random.default_rng(6), _clock(), False)
    coarse = chunks(np.random.default_rng(6), _clock(Regime.SECOND, 10 * SECOND_MS), False)
    minute = chunks(np.random.default_rng(6), _clock(Regime.MINUTE, MINUTE_MS), False)
    np.testing.assert_array_equal(minute, second)
    zeros = [np.mean(series == 0) for series in (second, coarse)]
    assert zeros[1] < zeros[0] - 0.1


def test_half_of_the_videos_are_watched_throughout():
    series = chunks(np.random.default_rng(7), _clock(), False)
    longest = []
    for row in series:
        idle = np.flatnonzero(np.diff(np.concatenate([[0], row == 0, [0]])))
        longest.append(max(np.diff(idle)[::2], default=0))
    assert 0.15 < np.mean(np.array(longest) > 60) < 0.6
