"""Series that are hardly series: constants, zeros, spikes, steps, sawteeth, availability.

Networks report many of them, and a forecaster must answer them exactly.

Axes: N series, L samples.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from training.synthetic.filters import log_uniform
from training.synthetic.segments import draw_segments, rasterise
from training.synthetic.timing import Clock


def degenerate(rng: np.random.Generator, clock: Clock, held_out: bool) -> NDArray[np.float32]:
    """(N, L) non-negative activity of level about 1; `held_out` has nothing to change here."""
    del held_out
    rows, length = clock.rows, clock.length
    kind = rng.integers(0, len(_COURSES), rows)
    out = np.empty((rows, length), dtype=np.float32)
    for number, course in enumerate(_COURSES):
        chosen = np.flatnonzero(kind == number)
        if len(chosen):
            out[chosen] = course(rng, len(chosen), length)
    return out


def _constants(rng: np.random.Generator, rows: int, length: int) -> NDArray[np.float32]:
    """One value throughout; in a third of the series with a trace of noise."""
    noise = np.where(rng.random((rows, 1)) < 0.33, log_uniform(rng, 1e-4, 1e-2, (rows, 1)), 0.0)
    return np.maximum(1.0 + noise * rng.standard_normal((rows, length)), 0.0).astype(np.float32)


def _zeros(rng: np.random.Generator, rows: int, length: int) -> NDArray[np.float32]:
    """Nothing at all, or almost nothing."""
    share = np.where(rng.random((rows, 1)) < 0.5, log_uniform(rng, 1e-3, 0.02, (rows, 1)), 0.0)
    return (rng.random((rows, length)) < share).astype(np.float32)


def _spikes(rng: np.random.Generator, rows: int, length: int) -> NDArray[np.float32]:
    """A base with spikes, at random or in step with a period."""
    base = log_uniform(rng, 0.01, 1.0, (rows, 1)) * (rng.random((rows, 1)) < 0.6)
    at_random = rng.random((rows, length)) < log_uniform(rng, 0.005, 0.1, (rows, 1))
    period = rng.integers(5, 100, (rows, 1))
    in_step = (np.arange(length) + rng.integers(0, 100, (rows, 1))) % period == 0
    hit = np.where(rng.random((rows, 1)) < 0.5, at_random, in_step)
    size = np.exp(rng.uniform(0.0, 0.8, (rows, 1)) * rng.standard_normal((rows, length)))
    return np.asarray(base + hit * size, dtype=np.float32)


def _steps(rng: np.random.Generator, rows: int, length: int) -> NDArray[np.float32]:
    """A level that jumps now and then and stays: configuration, licences, sleeping carriers."""
    segments = draw_segments(
        rng,
        log_uniform(rng, 20.0, 400.0, rows),
        np.zeros(rows, dtype=np.float32),
        np.full(rows, 0.8, dtype=np.float32),
        length,
    )
    whole = type(segments)(segments.row, np.rint(segments.start), np.rint(segments.end))
    choices = log_uniform(rng, 0.1, 3.0, (rows, 3))
    level = choices[segments.row, rng.integers(0, 3, len(segments.row))].astype(np.float64)
    return rasterise(whole, level, rows, length)


def _sawteeth(rng: np.random.Generator, rows: int, length: int) -> NDArray[np.float32]:
    """A rise that resets: buffers, timers, totals that somebody forgot to difference."""
    period = log_uniform(rng, 6.0, 300.0, (rows, 1))
    position = (np.arange(length) / period + rng.random((rows, 1))) % 1.0
    falling = rng.random((rows, 1)) < 0.3
    noise = log_uniform(rng, 1e-3, 0.1, (rows, 1)) * rng.standard_normal((rows, length))
    tooth = np.where(falling, 1.0 - position, position) * 2.0 + noise
    return np.maximum(tooth, 0.0).astype(np.float32)


def _availability(rng: np.random.Generator, rows: int, length: int) -> NDArray[np.float32]:
    """Full up time with short outages, some of them partial."""
    segments = draw_segments(
        rng,
        log_uniform(rng, 0.3, 20.0, rows),
        log_uniform(rng, 100.0, 2000.0, rows),
        np.full(rows, 1.0, dtype=np.float32),
        length,
    )
    depth = np.where(rng.random(len(segments.row)) < 0.6, 1.0, rng.random(len(segments.row)))
    return np.asarray(
        np.maximum(1.0 - rasterise(segments, depth, rows, length), 0.0), dtype=np.float32
    )


_COURSES: tuple[Callable[[np.random.Generator, int, int], NDArray[np.float32]], ...] = (
    _constants,
    _zeros,
    _spikes,
    _steps,
    _sawteeth,
    _availability,
)
