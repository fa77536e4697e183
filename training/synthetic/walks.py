"""Series without a season: random walks, mean-reverting levels, and local trends.

Axes: N series, L samples.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from training.synthetic.filters import (
    autoregressive,
    chance,
    geometric_filter,
    log_uniform,
    unit_mean,
)
from training.synthetic.timing import Clock

_MOST_LOG = 6.0


def walks(rng: np.random.Generator, clock: Clock, held_out: bool) -> NDArray[np.float32]:
    """(N, L) non-negative activity of mean 1; `held_out` has nothing to change here."""
    del held_out
    rows, length = clock.rows, clock.length
    course = np.empty((rows, length), dtype=np.float32)
    kind = rng.random(rows)
    reverting = np.flatnonzero(kind < 0.5)
    ratio = np.exp(-1.0 / log_uniform(rng, 1.0, 200.0, len(reverting)))
    course[reverting] = autoregressive(rng, length, ratio)
    walking = np.flatnonzero((kind >= 0.5) & (kind < 0.85))
    course[walking] = _increments(rng, len(walking), length).cumsum(axis=1) / np.sqrt(length / 4.0)
    trending = np.flatnonzero(kind >= 0.85)
    slope_ratio = np.exp(-1.0 / log_uniform(rng, 5.0, 100.0, len(trending)))
    slopes = geometric_filter(_increments(rng, len(trending), length), slope_ratio)
    course[trending] = _unit_spread(slopes.cumsum(axis=1))
    return unit_mean(_positive(rng, course))


def _increments(rng: np.random.Generator, rows: int, length: int) -> NDArray[np.float32]:
    """(rows, length) steps of a walk: normal, or rare and large in a quarter of the series."""
    steps = rng.standard_normal((rows, length), dtype=np.float32)
    rare = np.flatnonzero(chance(rng, 0.25, rows))
    share = log_uniform(rng, 0.01, 0.3, (len(rare), 1))
    hit = rng.random((len(rare), length), dtype=np.float32) < share
    steps[rare] *= hit / np.sqrt(share)
    return steps


def _positive(rng: np.random.Generator, course: NDArray[np.float32]) -> NDArray[np.float32]:
    """Activity from a course of about unit size: an exponential, a high level, or a distance."""
    rows = len(course)
    kind = rng.random((rows, 1))
    sigma = log_uniform(rng, 0.05, 0.9, (rows, 1))
    height = log_uniform(rng, 1.0, 10.0, (rows, 1))
    exponential = np.exp(np.clip(sigma * course, -_MOST_LOG, _MOST_LOG))
    lifted = course - course.min(axis=1, keepdims=True) * height
    activity = np.where(kind < 0.5, exponential, np.where(kind < 0.8, lifted, np.abs(course)))
    noise = log_uniform(rng, 0.003, 0.4, (rows, 1)) * chance(rng, 0.7, rows)[:, None]
    activity *= np.exp(noise * rng.standard_normal(course.shape, dtype=np.float32))
    return np.maximum(activity, 0.0).astype(np.float32)


def _unit_spread(course: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(
        (course - course.mean(axis=1, keepdims=True))
        / (course.std(axis=1, keepdims=True) + np.float32(1e-6)),
        dtype=np.float32,
    )
