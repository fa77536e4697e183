"""Sessions: downloads, streams and calls that hold a rate for a while, with idle time between.

Constant bit rate on a grid with rare one-step excursions, steady rates with some noise, or smooth
ramps; a stall is made good in the next step.

Axes: N series, L samples.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from training.synthetic.filters import chance, geometric_filter, log_uniform, unit_mean
from training.synthetic.segments import draw_segments, rasterise
from training.synthetic.timing import Clock


def sessions(rng: np.random.Generator, clock: Clock, held_out: bool) -> NDArray[np.float32]:
    """(N, L) non-negative activity of mean 1; `held_out` has nothing to change here."""
    del held_out
    rows, length = clock.rows, clock.length
    idle = log_uniform(rng, 2.0, 300.0, rows) * chance(rng, 0.7, rows)
    segments = draw_segments(
        rng,
        log_uniform(rng, 15.0, 800.0, rows),
        idle.astype(np.float32),
        rng.uniform(0.1, 1.0, rows).astype(np.float32),
        length,
    )
    # Many devices repeat one rate in every session; others choose anew.
    sigma = rng.uniform(0.05, 1.0, rows) * chance(rng, 0.6, rows)
    level = np.exp(sigma[segments.row] * rng.standard_normal(len(segments.row)))
    rate = rasterise(segments, level, rows, length)
    kind = rng.random(rows)
    for chosen, course in (
        (np.flatnonzero(kind < 0.4), _constant),
        (np.flatnonzero((kind >= 0.4) & (kind < 0.75)), _steady),
        (np.flatnonzero(kind >= 0.75), _ramps),
    ):
        if len(chosen):
            rate[chosen] = course(rng, rate[chosen])
    return unit_mean(_stalled(rng, rate))


def _constant(rng: np.random.Generator, rate: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rates on a grid; now and then one sample is off it."""
    rows, length = rate.shape
    grid = log_uniform(rng, 0.01, 0.2, (rows, 1))
    wobble = rng.integers(0, 3, (rows, 1)) * 0.5
    noisy = rate / grid + (rate > 0) * wobble * rng.standard_normal((rows, length))
    held = np.maximum(np.rint(noisy), 0.0) * grid
    excursion_share = log_uniform(rng, 0.002, 0.08, (rows, 1))
    excursion = rng.random((rows, length), dtype=np.float32) < excursion_share
    factor = rng.uniform(0.0, 2.0, (rows, length)) ** 2
    return np.where(excursion, held * factor, held).astype(np.float32)


def _steady(rng: np.random.Generator, rate: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rates with 1 to 20 % of noise."""
    sigma = log_uniform(rng, 0.01, 0.2, (len(rate), 1))
    return np.maximum(rate * (1.0 + sigma * rng.standard_normal(rate.shape, dtype=np.float32)), 0.0)


def _ramps(rng: np.random.Generator, rate: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rates that rise and fall smoothly."""
    ratio = np.exp(-1.0 / log_uniform(rng, 2.0, 60.0, len(rate)))
    once = geometric_filter(rate, ratio) * (1.0 - ratio)[:, None]
    twice = geometric_filter(once, ratio) * (1.0 - ratio)[:, None]
    sigma = log_uniform(rng, 0.005, 0.1, (len(rate), 1))
    return np.asarray(
        twice * np.exp(sigma * rng.standard_normal(rate.shape, dtype=np.float32)), dtype=np.float32
    )


def _stalled(rng: np.random.Generator, rate: NDArray[np.float32]) -> NDArray[np.float32]:
    """Dips whose lost volume arrives in the next sample, in 40 % of the series."""
    rows, length = rate.shape
    share = log_uniform(rng, 0.002, 0.06, (rows, 1)) * chance(rng, 0.4, rows)[:, None]
    stalled = rng.random((rows, length), dtype=np.float32) < share
    lost = np.where(stalled, rate * rng.uniform(0.3, 1.0, (rows, length)), 0.0)
    lost = lost.astype(np.float32)
    rate -= lost
    rate[:, 1:] += lost[:, :-1]
    return rate
