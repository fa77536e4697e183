"""On/off traffic: a few sources that transmit in bursts and are silent between them.

What a scheduler sees of single users or of small cells at steps of seconds.

Axes: N series, R sources of all series, E bursts, L samples.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from training.synthetic.filters import chance, geometric_filter, log_uniform, unit_mean
from training.synthetic.segments import draw_segments, rasterise
from training.synthetic.timing import SECOND_MS, Clock, Regime

_LEAST_ON_STEPS = 0.35
_LEAST_OFF_STEPS = 0.65
_RELATIVE_DUST = 1e-5


def on_off_bursts(rng: np.random.Generator, clock: Clock, held_out: bool) -> NDArray[np.float32]:
    """(N, L) non-negative activity of mean 1; `held_out` has nothing to change here."""
    del held_out
    rows, length = clock.rows, clock.length
    # Durations are seconds where steps are seconds; else the same numbers are read as steps.
    step_seconds = clock.step_ms / SECOND_MS if clock.regime is Regime.SECOND else 1.0
    source = np.repeat(np.arange(rows), rng.integers(1, 4, rows, endpoint=True))  # (R,)
    mean_on = log_uniform(rng, 0.4, 60.0, rows)[source] / step_seconds
    mean_off = log_uniform(rng, 0.7, 120.0, rows)[source] / step_seconds
    own_pace = log_uniform(rng, 0.5, 2.0, len(source))
    segments = draw_segments(
        rng,
        np.maximum(mean_on * own_pace, _LEAST_ON_STEPS).astype(np.float32),
        np.maximum(mean_off * own_pace, _LEAST_OFF_STEPS).astype(np.float32),
        rng.uniform(0.2, 1.3, rows).astype(np.float32)[source],
        length,
    )
    level_sigma = rng.uniform(0.05, 2.0, rows)[source]
    weight = log_uniform(rng, 0.3, 1.0, len(source))
    sigma = level_sigma[segments.row]
    spread = np.exp(sigma * rng.standard_normal(len(sigma)))
    level = np.asarray(weight[segments.row] * spread, dtype=np.float64)
    by_source = rasterise(segments, level, len(source), length)  # (R, L)
    first = np.flatnonzero(np.diff(source, prepend=-1))
    traffic = np.add.reduceat(by_source, first, axis=0)  # (N, L)
    traffic[traffic < _RELATIVE_DUST] = 0.0
    return _finished(rng, traffic)


def _finished(rng: np.random.Generator, traffic: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rate caps, long idle times, smoothing, and what an idle device still sends."""
    rows, length = traffic.shape
    capped = np.flatnonzero(chance(rng, 0.35, rows))
    cap = log_uniform(rng, 0.2, 0.9, (len(capped), 1)) * traffic[capped].max(axis=1, keepdims=True)
    traffic[capped] = np.minimum(traffic[capped], cap)
    sleepy = np.flatnonzero(chance(rng, 0.45, rows))
    if len(sleepy):
        traffic[sleepy] *= _awake(rng, len(sleepy), length)
    smooth = np.flatnonzero(chance(rng, 0.25, rows))
    ratio = rng.uniform(0.2, 0.9, len(smooth)).astype(np.float32)
    traffic[smooth] = geometric_filter(traffic[smooth], ratio) * (1.0 - ratio)[:, None]
    traffic = unit_mean(traffic)
    kind = rng.random(rows)
    chatty = np.flatnonzero(kind < 0.3)
    chatter = log_uniform(rng, 1e-4, 0.05, (len(chatty), 1))
    traffic[chatty] += chatter * rng.exponential(1.0, (len(chatty), length)).astype(np.float32) ** 2
    loaded = np.flatnonzero(kind > 0.85)
    traffic[loaded] += log_uniform(rng, 0.05, 2.0, (len(loaded), 1))
    jitter = log_uniform(rng, 0.01, 0.5, (rows, 1))
    traffic *= np.exp(jitter * rng.standard_normal((rows, length), dtype=np.float32))
    return unit_mean(traffic)


def _awake(rng: np.random.Generator, rows: int, length: int) -> NDArray[np.float32]:
    """(rows, length) 1 while a device is in use, 0 over its long idle times."""
    segments = draw_segments(
        rng,
        log_uniform(rng, 30.0, 800.0, rows),
        log_uniform(rng, 20.0, 600.0, rows),
        np.full(rows, 0.8, dtype=np.float32),
        length,
    )
    return rasterise(segments, np.ones(len(segments.row)), rows, length)
