"""Alternating on and off segments of random length, drawn flat and put on the sampling grid.

Axes: N series, L samples, E segments of all series together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Segments:
    """On-segments of all series, in order of series and time.

    Attributes:
        row: (E,) the series a segment belongs to.
        start: (E,) start in steps, fractional; may lie before the first or after the last sample.
        end: (E,) end in steps, fractional.
    """

    row: NDArray[np.intp]
    start: NDArray[np.float64]
    end: NDArray[np.float64]


def draw_segments(
    rng: np.random.Generator,
    mean_on: NDArray[np.float32],
    mean_off: NDArray[np.float32],
    spread: NDArray[np.float32],
    length: int,
) -> Segments:
    """Draw lognormal on and off times for N series until each covers `length` steps.

    Args:
        rng: Source of randomness.
        mean_on: (N,) mean on time in steps, above 0.
        mean_off: (N,) mean off time in steps, 0 or above.
        spread: (N,) sigma of the lognormal.
        length: L.

    Returns:
        Segments whose series begin in the middle of a cycle.
    """
    cycles = length / (mean_on + mean_off)
    # Enough for the sum of skewed draws to pass the end; a series that ran out would always be
    # idle just where forecasts are judged.
    counts = np.ceil(cycles + 6.0 * np.sqrt(cycles) + 8.0).astype(np.intp)
    row = np.repeat(np.arange(len(counts)), counts)
    sigma = spread[row]
    on = mean_on[row] * np.exp(sigma * rng.standard_normal(len(row)) - 0.5 * sigma**2)
    off = mean_off[row] * np.exp(sigma * rng.standard_normal(len(row)) - 0.5 * sigma**2)
    end = np.cumsum(on + off)
    first = np.cumsum(counts) - counts
    before = np.concatenate([[0.0], end])[first]
    lead = rng.uniform(0.0, 1.0, len(counts)) * (mean_on + mean_off)
    end = end - (before + lead)[row]
    return Segments(row, end - on, end)


def rasterise(
    segments: Segments, level: NDArray[np.float64], rows: int, length: int
) -> NDArray[np.float32]:
    """(rows, length) mean over each sample of the sum of segments at `level` (E,).

    Edges inside a sample count by their share of it. Levels are put in as differences and summed
    up once.
    """
    width = length + 2
    steps = np.zeros(rows * width)
    for edge, sign in ((segments.start, 1.0), (segments.end, -1.0)):
        position = np.clip(edge, 0.0, length)
        sample = position.astype(np.intp)
        share_after = position - sample
        index = segments.row * width + sample
        signed = sign * level
        steps += np.bincount(index, signed * (1.0 - share_after), rows * width)
        steps += np.bincount(index + 1, signed * share_after, rows * width)
    sums = np.cumsum(steps.reshape(rows, width), axis=1)[:, :length]
    return np.maximum(sums, 0.0).astype(np.float32)
