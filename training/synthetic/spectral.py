"""Coloured noise and waves of random periods: what Gaussian process kernels would give, by FFT.

Validation has period bands of its own.

Axes: N series, W waves, L samples.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from training.synthetic.filters import chance, log_uniform, power_law_noise, unit_mean
from training.synthetic.timing import Clock

WAVES = 4
_SHORTEST_PERIOD = 4.0
HELD_OUT_PERIODS = ((17.0, 22.0), (65.0, 80.0), (110.0, 130.0))
"""Bands of periods, in samples, that training never draws and validation only draws."""


def draw_periods(
    rng: np.random.Generator, rows: int, length: int, held_out: bool
) -> NDArray[np.float32]:
    """(N, W) periods in samples: log-uniform, inside or outside the held-out bands."""
    if held_out:
        low, high = np.array(HELD_OUT_PERIODS).T
        band = rng.integers(0, len(low), (rows, WAVES))
        return np.asarray(rng.uniform(low[band], high[band]), dtype=np.float32)
    period = log_uniform(
        rng, _SHORTEST_PERIOD, max(length / 1.5, 2 * _SHORTEST_PERIOD), (rows, WAVES)
    )
    for low_edge, high_edge in HELD_OUT_PERIODS:
        inside = (period >= low_edge) & (period <= high_edge)
        # Moved to just under the band, by as much as it lay above the lower edge.
        period = np.where(inside, low_edge * low_edge / (period + 1e-3), period)
    return period.astype(np.float32)


def spectral(rng: np.random.Generator, clock: Clock, held_out: bool) -> NDArray[np.float32]:
    """(N, L) non-negative activity of mean 1: waves plus coloured noise, bent."""
    rows, length = clock.rows, clock.length
    period = draw_periods(rng, rows, length, held_out)
    strength = log_uniform(rng, 0.1, 1.0, (rows, WAVES)) * (rng.random((rows, WAVES)) < 0.55)
    phase = rng.uniform(0.0, 2.0 * np.pi, (rows, WAVES)).astype(np.float32)
    time = np.arange(length, dtype=np.float32)
    course = np.zeros((rows, length), dtype=np.float32)
    for wave in range(WAVES):
        angle = (2.0 * np.pi / period[:, wave, None]) * time + phase[:, wave, None]
        # The second harmonic makes waves lopsided, as real ones are.
        course += strength[:, wave, None] * (np.sin(angle) + 0.3 * np.cos(2.0 * angle))
    slope = rng.uniform(0.0, 2.0, rows).astype(np.float32)
    course += log_uniform(rng, 0.03, 1.0, (rows, 1)) * power_law_noise(rng, length, slope)
    course /= course.std(axis=1, keepdims=True) + np.float32(1e-6)
    kind = rng.random((rows, 1))
    sigma = log_uniform(rng, 0.1, 1.2, (rows, 1))
    lifted = np.maximum(course + log_uniform(rng, 1.0, 10.0, (rows, 1)), 0.0)
    product = np.maximum(1.0 + sigma * course, 0.0)
    product = product * np.roll(product, 1, axis=0) if rows > 1 else product
    activity = np.where(kind < 0.5, np.exp(sigma * course), np.where(kind < 0.85, lifted, product))
    activity[chance(rng, 0.1, rows)] **= 2
    return unit_mean(activity.astype(np.float32))
