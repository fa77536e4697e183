"""Day profiles: how the load of a cell runs over a day, on working days and on weekends.

A profile is a night trough plus rush-hour bumps, bent by a few harmonics and by local quirks.
Validation has shapes of its own: plateaus with ramps and sawtooth-like tents.

Axes: N series, G grid points a day.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from training.synthetic.filters import chance, log_uniform, power_law_noise

GRID = 96
_BUMP_HOURS = np.array([9.0, 12.5, 18.0, 21.0], dtype=np.float32)


class ProfileShape(StrEnum):
    """The rule by which the course of a day is drawn."""

    BUMPS = "bumps"
    HARMONICS = "harmonics"
    PLATEAU = "plateau"
    TENT = "tent"


TRAINING_SHAPES = (ProfileShape.BUMPS, ProfileShape.HARMONICS)
HELD_OUT_SHAPES = (ProfileShape.PLATEAU, ProfileShape.TENT)
_FIRST_SHAPE_SHARE = 0.85


def draw_shapes(rng: np.random.Generator, rows: int, held_out: bool) -> list[ProfileShape]:
    """One shape a series, from the trained or from the held-out ones."""
    first, second = HELD_OUT_SHAPES if held_out else TRAINING_SHAPES
    return [first if is_first else second for is_first in chance(rng, _FIRST_SHAPE_SHARE, rows)]


def day_profiles(rng: np.random.Generator, rows: int, held_out: bool) -> NDArray[np.float32]:
    """(N, 2, G + 1) working-day and weekend profiles of mean 1; the last point is the first."""
    shapes = np.array(draw_shapes(rng, rows, held_out))
    working = _draw_profiles(rng, shapes)
    weekend = _draw_profiles(rng, shapes)
    # Most cells keep their character on the weekend; some (offices, stadiums) change altogether.
    likeness = rng.beta(3.0, 1.0, (rows, 1)).astype(np.float32)
    likeness[chance(rng, 0.3, rows)] = 1.0
    weekend = working**likeness * weekend ** (1.0 - likeness)
    profiles = np.stack([working, weekend], axis=1)  # (N, 2, G)
    profiles /= profiles.mean(axis=2, keepdims=True)
    return np.concatenate([profiles, profiles[:, :, :1]], axis=2)  # (N, 2, G + 1)


def _draw_profiles(rng: np.random.Generator, shapes: NDArray[np.str_]) -> NDArray[np.float32]:
    """(N, G) positive profiles of the shapes named, bent and roughened."""
    rows = len(shapes)
    out = np.empty((rows, GRID), dtype=np.float32)
    for shape, draw in _DRAW.items():
        chosen = np.flatnonzero(shapes == shape.value)
        if len(chosen):
            out[chosen] = draw(rng, len(chosen))
    trough = log_uniform(rng, 0.004, 0.4, (rows, 1))
    out = trough + out / (out.max(axis=1, keepdims=True) + np.float32(1e-6))
    quirk_sigma = log_uniform(rng, 0.02, 0.35, rows) * chance(rng, 0.5, rows)
    slope = rng.uniform(0.3, 1.5, rows).astype(np.float32)
    quirks = quirk_sigma[:, None] * power_law_noise(rng, GRID, slope)
    bend_sigma = log_uniform(rng, 0.02, 0.6, rows)
    return np.asarray(
        out * np.exp(bend_sigma[:, None] * _harmonics(rng, rows) + quirks), dtype=np.float32
    )


def _bumps(rng: np.random.Generator, rows: int) -> NDArray[np.float32]:
    """Up to four von Mises bumps near the usual rush hours; a few lie anywhere in the day."""
    bumps = len(_BUMP_HOURS)
    hour = _BUMP_HOURS + rng.normal(0.0, 1.0, (rows, bumps)).astype(np.float32)
    moved = rng.random((rows, bumps)) < 0.08
    hour = hour + moved * rng.uniform(-12.0, 12.0, (rows, bumps)).astype(np.float32)
    height = log_uniform(rng, 0.15, 1.0, (rows, bumps)) * (rng.random((rows, bumps)) < 0.7)
    height[np.arange(rows), rng.integers(0, bumps, rows)] = 1.0
    kappa = log_uniform(rng, 1.0, 25.0, (rows, bumps))
    angle = _angles() - (2.0 * np.pi / 24.0) * hour[:, :, None]  # (N, bumps, G)
    shape = height[:, :, None] * np.exp(kappa[:, :, None] * (np.cos(angle) - 1.0))
    return np.asarray(shape.sum(axis=1), dtype=np.float32)


def _harmonic_days(rng: np.random.Generator, rows: int) -> NDArray[np.float32]:
    """The exponential of a few harmonics: smooth days without named rush hours."""
    return np.asarray(
        np.exp(log_uniform(rng, 0.3, 1.2, (rows, 1)) * _harmonics(rng, rows)), dtype=np.float32
    )


def _plateau(rng: np.random.Generator, rows: int) -> NDArray[np.float32]:
    """A flat day between two ramps."""
    hours = np.arange(GRID, dtype=np.float32) * (24.0 / GRID)
    opening = rng.uniform(5.0, 11.0, (rows, 1)).astype(np.float32)
    open_hours = rng.uniform(4.0, 15.0, (rows, 1)).astype(np.float32)
    ramp_hours = rng.uniform(0.3, 3.0, (rows, 1)).astype(np.float32)
    since = (hours - opening) % 24.0
    rise = np.clip(since / ramp_hours, 0.0, 1.0)
    fall = np.clip((open_hours + ramp_hours - since) / ramp_hours, 0.0, 1.0)
    return np.asarray(np.minimum(rise, fall), dtype=np.float32)


def _tent(rng: np.random.Generator, rows: int) -> NDArray[np.float32]:
    """A straight rise to one peak and a straight fall from it, unlike in length."""
    hours = np.arange(GRID, dtype=np.float32) * (24.0 / GRID)
    start = rng.uniform(0.0, 24.0, (rows, 1)).astype(np.float32)
    rise_hours = rng.uniform(3.0, 21.0, (rows, 1)).astype(np.float32)
    since = (hours - start) % 24.0
    rising = since / rise_hours
    falling = (24.0 - since) / (24.0 - rise_hours)
    return np.asarray(np.minimum(rising, falling), dtype=np.float32)


def _harmonics(rng: np.random.Generator, rows: int) -> NDArray[np.float32]:
    """(N, G) sum of six harmonics of a day with falling weights, about unit variance."""
    order = np.arange(1, 7, dtype=np.float32)
    waves = rng.standard_normal((rows, 2, len(order)), dtype=np.float32) / order
    angles = order[:, None] * _angles()  # (orders, G)
    return np.asarray(waves[:, 0] @ np.cos(angles) + waves[:, 1] @ np.sin(angles), dtype=np.float32)


def _angles() -> NDArray[np.float32]:
    return (np.arange(GRID) * (2.0 * np.pi / GRID)).astype(np.float32)


_DRAW = {
    ProfileShape.BUMPS: _bumps,
    ProfileShape.HARMONICS: _harmonic_days,
    ProfileShape.PLATEAU: _plateau,
    ProfileShape.TENT: _tent,
}
