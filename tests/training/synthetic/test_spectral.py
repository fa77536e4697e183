"""Random periods: held-out bands are never drawn in training and always in validation."""

from __future__ import annotations

import numpy as np

from training.synthetic.spectral import HELD_OUT_PERIODS, draw_periods, spectral
from training.synthetic.timing import MINUTE_MS, Clock, Regime


def _in_bands(period: np.ndarray) -> np.ndarray:
    inside = [(period >= low) & (period <= high) for low, high in HELD_OUT_PERIODS]
    return np.asarray(np.any(inside, axis=0))


def test_training_never_draws_a_held_out_period():
    period = draw_periods(np.random.default_rng(0), 20_000, 900, held_out=False)
    assert not _in_bands(period).any()
    assert period.min() >= 3.9
    assert period.max() > 500


def test_validation_draws_only_held_out_periods():
    assert _in_bands(draw_periods(np.random.default_rng(0), 5_000, 900, held_out=True)).all()


def test_periods_show_in_the_spectrum():
    clock = Clock(Regime.MINUTE, MINUTE_MS, np.zeros(200, dtype=np.int64), 720)
    series = spectral(np.random.default_rng(0), clock, held_out=True).astype(np.float64)
    power = np.abs(np.fft.rfft(series - series.mean(axis=1, keepdims=True), axis=1)) ** 2
    power /= power.sum(axis=1, keepdims=True)
    strongest = power[:, 1:].argmax(axis=1) + 1
    near = _in_bands(720 / (strongest + 1)) | _in_bands(720 / strongest)
    assert near.mean() > 0.4
