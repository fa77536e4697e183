"""Traffic in small pieces: video that comes in chunks, and devices that poll.

Most seconds carry nothing at all. Chunks come at a steady pace and at about full rate; polls are
single samples whose sizes range over decades, between keep-alives that are all alike.

Axes: N series, E pieces, L samples.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from training.synthetic.filters import chance, log_uniform, unit_mean
from training.synthetic.segments import draw_segments, rasterise
from training.synthetic.timing import SECOND_MS, Clock, Regime

_RELATIVE_DUST = 1e-5
_LEAST_ON_STEPS = 0.3


def chunks(rng: np.random.Generator, clock: Clock, held_out: bool) -> NDArray[np.float32]:
    """(N, L) bursts of a few seconds at a steady pace, nothing between; `held_out` changes none."""
    del held_out
    rows, length = clock.rows, clock.length
    second = _steps_a_second(clock)
    segments = draw_segments(
        rng,
        np.maximum(log_uniform(rng, 0.7, 6.0, rows) * second, _LEAST_ON_STEPS),
        log_uniform(rng, 2.0, 25.0, rows) * second,
        log_uniform(rng, 0.03, 0.4, rows),
        length,
    )
    sigma = log_uniform(rng, 0.03, 0.6, rows)[segments.row]
    level = np.exp(sigma * rng.standard_normal(len(sigma)))
    traffic = _without_dust(rasterise(segments, level, rows, length))
    capped = np.flatnonzero(chance(rng, 0.3, rows))
    cap = log_uniform(rng, 0.4, 1.0, (len(capped), 1)) * traffic[capped].max(axis=1, keepdims=True)
    traffic[capped] = np.minimum(traffic[capped], cap)
    return unit_mean(traffic * _watched(rng, rows, length, second))


def polls(rng: np.random.Generator, clock: Clock, held_out: bool) -> NDArray[np.float32]:
    """(N, L) single pulses of very unlike sizes, in step or at random, and equal keep-alives."""
    del held_out
    rows, length = clock.rows, clock.length
    second = _steps_a_second(clock)
    pace = np.where(chance(rng, 0.5, rows), log_uniform(rng, 0.02, 0.2, rows), 1.0)
    segments = draw_segments(
        rng,
        np.maximum(log_uniform(rng, 0.1, 2.0, rows) * second, _LEAST_ON_STEPS),
        log_uniform(rng, 2.0, 40.0, rows) * second,
        pace.astype(np.float32),
        length,
    )
    sigma = rng.uniform(0.3, 2.5, rows)[segments.row]
    level = np.exp(np.clip(sigma * rng.standard_normal(len(sigma)), -8.0, 4.0))
    traffic = unit_mean(_without_dust(rasterise(segments, level, rows, length)))
    kept = chance(rng, 0.6, rows)[:, None]
    period = np.maximum(np.rint(log_uniform(rng, 3.0, 30.0, (rows, 1)) * second), 1.0)
    phase = rng.integers(0, 1_000, (rows, 1))
    alive = kept & ((np.arange(length) + phase) % period < 1.0)
    return unit_mean(traffic + alive * log_uniform(rng, 1e-4, 0.03, (rows, 1)))


def _steps_a_second(clock: Clock) -> float:
    """Durations are seconds where steps are seconds; else the same numbers are read as steps."""
    return SECOND_MS / clock.step_ms if clock.regime is Regime.SECOND else 1.0


def _watched(
    rng: np.random.Generator, rows: int, length: int, second: float
) -> NDArray[np.float32]:
    """(N, L) 1 while someone watches; half of the series are watched throughout."""
    segments = draw_segments(
        rng,
        log_uniform(rng, 40.0, 600.0, rows) * second,
        log_uniform(rng, 15.0, 300.0, rows) * second,
        np.full(rows, 0.8, dtype=np.float32),
        length,
    )
    watched = rasterise(segments, np.ones(len(segments.row)), rows, length)
    watched[chance(rng, 0.5, rows)] = 1.0
    return watched


def _without_dust(traffic: NDArray[np.float32]) -> NDArray[np.float32]:
    """The same with exact zeros where sums of differences left rounding errors."""
    return np.where(traffic < _RELATIVE_DUST, np.float32(0.0), traffic)
