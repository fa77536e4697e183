"""Noise factors: mean 1, spreads as asked, held-out family kept out."""

from __future__ import annotations

import numpy as np
import pytest

from training.synthetic.noise import (
    HELD_OUT_NOISES,
    TRAINING_NOISES,
    NoiseFamily,
    bursts,
    draw_noise_families,
    heavy_scale,
    white_factor,
)


def _usual(rows: int) -> np.ndarray:
    return np.ones((rows, 1), dtype=np.float32)


def test_training_never_draws_the_held_out_noise():
    rng = np.random.default_rng(0)
    assert set(draw_noise_families(rng, 2_000, held_out=False)) == set(TRAINING_NOISES)
    assert set(draw_noise_families(rng, 2_000, held_out=True)) == set(HELD_OUT_NOISES)
    assert set(TRAINING_NOISES) | set(HELD_OUT_NOISES) == set(NoiseFamily)
    assert not set(TRAINING_NOISES) & set(HELD_OUT_NOISES)


@pytest.mark.parametrize("held_out", [False, True])
def test_noise_factors_are_positive_with_mean_one(held_out):
    level = np.ones((300, 2_000), dtype=np.float32)
    factor = white_factor(
        np.random.default_rng(0), level, _usual(300), dense=False, held_out=held_out
    )
    assert (factor >= 0.0).all()
    assert np.median(factor.mean(axis=1)) == pytest.approx(1.0, abs=0.02)


def test_heavy_tails_come_with_a_quieter_middle():
    rng = np.random.default_rng(0)
    normal = np.abs(rng.standard_normal((200, 2_000)))
    heavy = normal * heavy_scale(rng, 200, 2_000)
    middle = np.median(heavy, axis=1)
    assert np.median(middle) < 0.95 * np.median(normal)
    tail = np.percentile(heavy, 99, axis=1) / middle
    assert np.median(tail) > 1.15 * np.percentile(normal, 99) / np.median(normal)


def test_a_calm_cell_has_less_noise():
    level = np.ones((400, 300), dtype=np.float32)
    spread = [
        np.median(
            white_factor(
                np.random.default_rng(0),
                level,
                quiet * _usual(400),
                dense=False,
                held_out=False,
            ).std(axis=1)
        )
        for quiet in (np.float32(1.0), np.float32(0.1))
    ]
    assert spread[1] < 0.2 * spread[0]


def test_quiet_hours_of_counting_cells_are_relatively_noisier():
    level = np.ones((400, 1_000), dtype=np.float32)
    level[:, 500:] = 0.05
    factor = white_factor(np.random.default_rng(0), level, _usual(400), dense=False, held_out=False)
    noisier = factor[:, 500:].std(axis=1) > 2.0 * factor[:, :500].std(axis=1)
    assert 0.2 < noisier.mean() < 0.6


def test_quiet_cells_have_a_smaller_spread():
    level = np.ones((300, 500), dtype=np.float32)
    quiet = _usual(300)
    quiet[150:] = 0.2
    factor = white_factor(np.random.default_rng(0), level, quiet, dense=False, held_out=False)
    usual, calm = factor[:150].std(axis=1), factor[150:].std(axis=1)
    assert 0.1 < np.median(calm) / np.median(usual) < 0.4


def test_bursts_only_add_and_half_of_the_series_have_none():
    factor = bursts(np.random.default_rng(0), 400, 1_500)
    assert (factor >= 1.0).all()
    assert factor.max() > 5.0
    assert 0.4 < (factor.max(axis=1) == 1.0).mean() < 0.65
