"""Multiplicative noise and decaying bursts on top of a cell's level.

Axes: N series, L samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from training.synthetic.filters import chance, geometric_filter, log_uniform, slow_curve

_MOST_BURST = 60.0
_HEAVY_SHARE = 0.6


class NoiseFamily(StrEnum):
    """The distribution of white multiplicative noise; all have mean 1."""

    LOGNORMAL = "lognormal"
    GAMMA = "gamma"
    LAPLACE = "laplace"


TRAINING_NOISES = (NoiseFamily.LOGNORMAL, NoiseFamily.GAMMA)
HELD_OUT_NOISES = (NoiseFamily.LAPLACE,)


def draw_noise_families(rng: np.random.Generator, rows: int, held_out: bool) -> NDArray[np.str_]:
    """(N,) names of noise families, from the trained or from the held-out ones."""
    return rng.choice([f.value for f in (HELD_OUT_NOISES if held_out else TRAINING_NOISES)], rows)


def white_factor(
    rng: np.random.Generator,
    level: NDArray[np.float32],
    quiet: NDArray[np.float32],
    *,
    dense: bool,
    held_out: bool,
) -> NDArray[np.float32]:
    """(N, L) independent noise factors of mean 1 for cells of mean-1 level (N, L).

    The spread differs by series; for some it follows the level as that of counts does (a quiet
    cell is relatively noisier), for some it changes over time, in most its tails are heavy.
    `quiet` (N, 1) multiplies the spread.
    """
    rows, length = level.shape
    low, high = (0.03, 1.0) if dense else (0.04, 1.2)
    sigma = np.repeat(quiet * log_uniform(rng, low, high, (rows, 1)), length, axis=1)
    restless = np.flatnonzero(chance(rng, _HEAVY_SHARE, rows))
    sigma[restless] *= heavy_scale(rng, len(restless), length)
    counting = np.flatnonzero(chance(rng, 0.4, rows))
    sigma[counting] /= np.sqrt(np.maximum(level[counting], 0.02))
    changing = np.flatnonzero(chance(rng, 0.35, rows))
    depth = rng.uniform(0.2, 0.8, (len(changing), 1)).astype(np.float32)
    sigma[changing] *= np.exp(depth * slow_curve(rng, len(changing), length, 24))
    np.clip(sigma, 0.0, 2.0, out=sigma)
    out = np.empty_like(sigma)
    families = draw_noise_families(rng, rows, held_out)
    for family, draw in _FACTORS.items():
        chosen = np.flatnonzero(families == family.value)
        if len(chosen):
            out[chosen] = draw(rng, sigma[chosen])
    return out


def heavy_scale(rng: np.random.Generator, rows: int, length: int) -> NDArray[np.float32]:
    """(N, L) factors that turn normal noise into Student's t of 2.5 to 12 degrees of freedom.

    Real counters step little most of the time and far now and then: the 99 % quantile of their
    relative steps is six to seven times the median, where it is 3.8 for normal noise.
    """
    freedom = log_uniform(rng, 2.5, 12.0, (rows, 1))
    chi = 2.0 * rng.standard_gamma(np.repeat(freedom / 2.0, length, axis=1), dtype=np.float32)
    scale = np.sqrt(freedom / np.maximum(chi, 0.05))
    # Of unit variance, so that heavy tails come with a quieter middle.
    return np.asarray(scale * np.sqrt((freedom - 2.0) / freedom), dtype=np.float32)


def bursts(rng: np.random.Generator, rows: int, length: int) -> NDArray[np.float32]:
    """(N, L) factors of at least 1: sudden surges that decay geometrically; half have none."""
    rate = log_uniform(rng, 1.0 / 600.0, 1.0 / 25.0, (rows, 1))
    rate[chance(rng, 0.5, rows)] = 0.0
    row, sample = np.nonzero(rng.random((rows, length), dtype=np.float32) < rate)
    heavy = chance(rng, 0.5, rows)[row]
    size = np.where(heavy, rng.pareto(1.8, len(row)) + 0.3, rng.exponential(1.0, len(row)))
    scale = log_uniform(rng, 0.2, 2.0, rows)[row]
    impulses = np.zeros((rows, length), dtype=np.float32)
    impulses[row, sample] = np.minimum(scale * size, _MOST_BURST)
    decay = rng.uniform(0.0, 0.93, rows).astype(np.float32)
    return 1.0 + geometric_filter(impulses, decay)


def _lognormal(rng: np.random.Generator, sigma: NDArray[np.float32]) -> NDArray[np.float32]:
    normal = rng.standard_normal(sigma.shape, dtype=np.float32)
    return np.exp(sigma * normal - 0.5 * sigma * sigma)


def _gamma(rng: np.random.Generator, sigma: NDArray[np.float32]) -> NDArray[np.float32]:
    variance = np.maximum(sigma * sigma, np.float32(1e-4))
    return np.asarray(
        rng.standard_gamma(1.0 / variance, dtype=np.float32) * variance, dtype=np.float32
    )


def _laplace(rng: np.random.Generator, sigma: NDArray[np.float32]) -> NDArray[np.float32]:
    """Exponentials of Laplace noise: sharper in the middle and heavier in the tails."""
    width = np.minimum(sigma / np.float32(np.sqrt(2.0)), np.float32(0.7))
    uniform = rng.random(sigma.shape, dtype=np.float32) - np.float32(0.5)
    laplace = -np.sign(uniform) * np.log1p(-2.0 * np.abs(uniform) + np.float32(1e-7))
    return np.asarray(np.exp(width * laplace) * (1.0 - width * width), dtype=np.float32)


_FACTORS: Mapping[
    NoiseFamily, Callable[[np.random.Generator, NDArray[np.float32]], NDArray[np.float32]]
] = {
    NoiseFamily.LOGNORMAL: _lognormal,
    NoiseFamily.GAMMA: _gamma,
    NoiseFamily.LAPLACE: _laplace,
}
