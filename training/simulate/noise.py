"""Randomness that is a function of its place: (seed, stream, entity, index), and of nothing else.

A file that is written twice, a run that is continued and a block that is computed in another size
must all give the same numbers, so no generator is ever carried along. Each value comes from the
counter-based generator Philox (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC
2011): stream and entity make the key, the index is the counter.

Slow variation is interpolated between keyed knots at fixed times, so it too is a function of time.

Axis legend: n indices or instants, W width (independent variates of one index).
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_WORDS_PER_COUNTER = 4
_MASK_64 = (1 << 64) - 1
# Days and blocks that reach into a range may lie before 1970; counters have no sign.
_INDEX_BIAS = 1 << 32


class Stream(IntEnum):
    """Independent uses of randomness; a value never moves, or every network of old changes."""

    CELL = 1
    SITE_DAY = 2
    CELL_HOURS = 3
    CELL_MINUTES = 4
    CELL_PERIOD = 5
    EFFICIENCY = 6
    BURST = 7
    EVENT = 8
    FATE = 9
    COUNTER_FAULT = 10
    CELL_FAULT = 11
    CLOCK_FAULT = 12
    RADIO = 13
    SITE = 14


def uniforms(
    seed: int, stream: Stream, entity: int, first: int, count: int, width: int
) -> FloatArray:
    """Variates of `count` consecutive indices, uniform in the open interval (0, 1).

    Args:
        seed: Seed of the network.
        stream: What the variates are for.
        entity: Which cell, element or the like, from 0.
        first: First index; it may be negative.
        count: Number of indices n.
        width: Variates W of one index.

    Returns:
        (n, W); row i depends on `first + i` and not on where the range begins.
    """
    counters = -(-width // _WORDS_PER_COUNTER)
    generator = np.random.Philox(
        key=np.array([seed & _MASK_64, (int(stream) << 40) | entity], dtype=np.uint64),
        counter=np.array([(first + _INDEX_BIAS) * counters, 0, 0, 0], dtype=np.uint64),
    )
    words = generator.random_raw(count * counters * _WORDS_PER_COUNTER)
    words = words.reshape(count, counters * _WORDS_PER_COUNTER)[:, :width]  # (n, W)
    # 53 bits and half a step keep 0 and 1 out, whose logarithm and inverse do not exist.
    unit: FloatArray = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54
    return unit


def normals(
    seed: int, stream: Stream, entity: int, first: int, count: int, width: int
) -> FloatArray:
    """Variates of `count` consecutive indices, standard normal (Box and Muller, 1958).

    Returns:
        (n, W); the arguments are those of `uniforms`.
    """
    pairs = -(-width // 2)
    unit = uniforms(seed, stream, entity, first, count, 2 * pairs)  # (n, 2 * pairs)
    radius = np.sqrt(-2.0 * np.log(unit[:, :pairs]))
    angle = 2.0 * np.pi * unit[:, pairs:]
    both = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    narrowed: FloatArray = both[:, :width]  # (n, W)
    return narrowed


def slow_normal(
    seed: int, stream: Stream, entity: int, time_ms: NDArray[np.int64], spacing_ms: int
) -> FloatArray:
    """A standard normal that wanders over about `spacing_ms`, at ascending instants.

    Knots stand at multiples of the spacing; between two of them the mixture is divided by its own
    standard deviation, so that the variance is 1 at every instant and not only at the knots.

    Args:
        seed: Seed of the network.
        stream: What the variation is for.
        entity: Which cell or site.
        time_ms: int64 (n,), ascending, milliseconds since 1970.
        spacing_ms: Distance of the knots.

    Returns:
        (n,).
    """
    if not len(time_ms):
        return np.empty(0)
    knot, offset_ms = np.divmod(time_ms, spacing_ms)
    first = int(knot[0])
    values = normals(seed, stream, entity, first, int(knot[-1]) - first + 2, 1)[:, 0]
    weight = smooth_step(offset_ms / spacing_ms)
    left, right = values[knot - first], values[knot - first + 1]
    mixture: FloatArray = ((1 - weight) * left + weight * right) / np.hypot(1 - weight, weight)
    return mixture


def smooth_step(ratio: FloatArray) -> FloatArray:
    """0 up to ratio 0, 1 from ratio 1, a cubic with flat ends between; any shape."""
    clipped = np.clip(ratio, 0.0, 1.0)
    step: FloatArray = clipped * clipped * (3.0 - 2.0 * clipped)
    return step
