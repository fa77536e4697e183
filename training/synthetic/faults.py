"""What goes wrong on the way: lost samples, outages, late files, cells that are new.

A lost file takes all KPIs of a cell with it; a lost counter takes one.

Axes: B cells, K KPIs, T history samples, H future samples, L = T + H.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from training.synthetic.filters import chance, log_uniform

RANDOM_SHARE = 0.25
BLOCK_SHARE = 0.15
OUTAGE_SHARE = 0.25
RECENT_SHARE = 0.3
REPEATABLE_SHARE = 0.4
TRAILING_SHARE = 0.05
SHORT_SHARE = 0.15
COUNTER_SHARE = 0.05
_LEAST_OBSERVED = 8
_MOST_TRAILING_STEPS = 32


def add_faults(
    rng: np.random.Generator,
    values: NDArray[np.float32],
    lower: NDArray[np.float32],
    *,
    context_steps: int,
    horizon: int,
    day_steps: float,
) -> NDArray[np.float32]:
    """(B, K, L) values with NaN where samples are missing and zeros where cells were down.

    Every KPI keeps at least some samples in its context, so that there is something to go on.

    Args:
        rng: Source of randomness.
        values: (B, K, L) float32 without gaps.
        lower: (B, K) natural lower limits; outages are reported as zero only where limits are.
        context_steps: Samples before the origin that a model sees.
        horizon: H.
        day_steps: Samples a day.
    """
    cells, kpis, length = values.shape
    origin = length - horizon
    out = _with_outages(rng, values, lower, origin, day_steps)
    missing = _scattered(rng, cells, length) | _blocks(rng, cells, length, context_steps)
    missing |= _short_history(rng, cells, length, origin, context_steps)
    missing |= _late_files(rng, cells, length, origin, context_steps)
    gaps = np.repeat(missing[:, None], kpis, axis=1)  # (B, K, L)
    counters = np.flatnonzero(chance(rng, COUNTER_SHARE, cells * kpis))
    flat = gaps.reshape(cells * kpis, length)
    flat[counters] |= rng.random((len(counters), length)) < rng.uniform(
        0.0, 0.3, (len(counters), 1)
    )
    observed = (~gaps[:, :, origin - context_steps : origin]).sum(axis=2)
    gaps[observed < _LEAST_OBSERVED] = False
    return np.where(gaps, np.float32(np.nan), out)


def _with_outages(
    rng: np.random.Generator,
    values: NDArray[np.float32],
    lower: NDArray[np.float32],
    origin: int,
    day_steps: float,
) -> NDArray[np.float32]:
    """Blocks of zeros: the cell was down, and its counters said so.

    Some begin at any time, some the likelier the nearer it is to the origin, and some a day or a
    week before it, for up to a day and a half: where months are seen, those are rare, and they are
    what a forecast is tempted to repeat.
    """
    cells, _, length = values.shape
    longest = float(max(2, length // 8))
    start = rng.uniform(0.0, length, (cells, 1))
    span = log_uniform(rng, 1.0, longest, (cells, 1))
    kind = rng.random((cells, 1))
    recent = origin - log_uniform(rng, 1.0, float(origin), (cells, 1))
    start = np.where(kind < RECENT_SHARE, recent, start)
    back = rng.choice([1.0, 7.0], (cells, 1)) + rng.uniform(-0.5, 0.5, (cells, 1))
    begin = origin - back * day_steps
    tempting = (kind > 1 - REPEATABLE_SHARE) & (begin > 0)
    start = np.where(tempting, begin, start)
    day_span = np.maximum(1.0, day_steps * rng.uniform(0.1, 1.5, (cells, 1)))
    span = np.where(tempting, np.minimum(day_span, longest), span)
    down = _spans(start, span * chance(rng, OUTAGE_SHARE, cells)[:, None], length)
    return np.where(down[:, None] & np.isfinite(lower)[:, :, None], np.float32(0.0), values)


def _scattered(rng: np.random.Generator, cells: int, length: int) -> NDArray[np.bool_]:
    """(B, L) single samples lost, up to 30 %."""
    share = log_uniform(rng, 0.002, 0.3, (cells, 1)) * chance(rng, RANDOM_SHARE, cells)[:, None]
    return rng.random((cells, length), dtype=np.float32) < share


def _blocks(
    rng: np.random.Generator, cells: int, length: int, context_steps: int
) -> NDArray[np.bool_]:
    """(B, L) up to two holes, each at most a quarter of the context."""
    longest = float(max(2, context_steps // 4))
    holes = np.zeros((cells, length), dtype=np.bool_)
    for share in (BLOCK_SHARE, BLOCK_SHARE / 2):
        start = rng.uniform(0.0, length, (cells, 1))
        span = log_uniform(rng, 1.0, longest, (cells, 1)) * chance(rng, share, cells)[:, None]
        holes |= _spans(start, span, length)
    return holes


def _spans(
    start: NDArray[np.float64], span: NDArray[np.floating[Any]], length: int
) -> NDArray[np.bool_]:
    """(B, L) the samples from `start` (B, 1) on, for `span` (B, 1) of them."""
    since = np.arange(length) - start
    return np.asarray((since >= 0.0) & (since < span), dtype=np.bool_)


def _short_history(
    rng: np.random.Generator, cells: int, length: int, origin: int, context_steps: int
) -> NDArray[np.bool_]:
    """(B, L) everything before some time: the cell went on air within the window."""
    seen = log_uniform(rng, 2.0 * _LEAST_OBSERVED, float(origin), (cells, 1))
    # Half of the new cells are new to the context too, not only to the lags behind it.
    seen = np.where(chance(rng, 0.5, cells)[:, None], np.minimum(seen, context_steps - 1), seen)
    short = chance(rng, SHORT_SHARE, cells)[:, None]
    return short & (np.arange(length) < origin - seen)


def _late_files(
    rng: np.random.Generator, cells: int, length: int, origin: int, context_steps: int
) -> NDArray[np.bool_]:
    """(B, L) the last samples before the origin have not arrived yet."""
    longest = float(min(_MOST_TRAILING_STEPS, max(2, context_steps // 4)))
    late = log_uniform(rng, 1.0, longest, (cells, 1)).round()
    late *= chance(rng, TRAILING_SHARE, cells)[:, None]
    column = np.arange(length)
    return (column < origin) & (column >= origin - late)
