"""Cells with daily and weekly life: profile x weekday x day level x trend x noise.

Everything multiplies, because quiet hours are quiet in every respect. Seasons follow the absolute
clock in a local time that differs by cell.

Axes: N series, L samples, D local days.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from training.synthetic.filters import autoregressive, chance, log_uniform, slow_curve, unit_mean
from training.synthetic.noise import bursts, white_factor
from training.synthetic.profile import GRID, day_profiles
from training.synthetic.timing import HOUR_MS, MINUTE_MS, Clock, LocalTime

_DENSE_SAMPLES_PER_DAY = 144


def seasonal_cells(rng: np.random.Generator, clock: Clock, held_out: bool) -> NDArray[np.float32]:
    """(N, L) non-negative activity of mean 1 with the seasons of `clock`."""
    local = clock.local(_zone_shifts(rng, clock.rows))
    rows, length = clock.rows, clock.length
    weekend = _weekends(rng, local.weekday)
    level = _hours(rng, local, weekend, day_profiles(rng, rows, held_out))
    day_level = _day_levels(rng, local.weekday, weekend)
    log_level = _trend(rng, clock)
    ratio = np.exp(-1.0 / log_uniform(rng, 0.7, 60.0, rows))
    log_level += log_uniform(rng, 0.02, 0.9, (rows, 1)) * autoregressive(rng, length, ratio)
    level *= np.take_along_axis(day_level, local.day, axis=1)
    level += _event_evenings(rng, local)
    level *= np.exp(np.clip(log_level, -6.0, 6.0))
    level = unit_mean(level)
    dense = clock.samples_per_day >= _DENSE_SAMPLES_PER_DAY
    level *= white_factor(rng, level, dense=dense, held_out=held_out)
    level *= bursts(rng, rows, length)
    return unit_mean(_capped(rng, _floored(rng, level)))


def _zone_shifts(rng: np.random.Generator, rows: int) -> NDArray[np.int64]:
    """(N,) local time less UTC: none, small, or any time zone, since networks label zones badly."""
    zone_ms = rng.integers(-12, 13, rows) * HOUR_MS
    near_ms = rng.normal(0.0, 60.0, rows).astype(np.int64) * MINUTE_MS
    kind = rng.random(rows)
    return np.where(kind < 0.4, 0, np.where(kind < 0.75, near_ms, zone_ms + near_ms))


def _weekends(rng: np.random.Generator, weekday: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(N, D) days that run as weekends: Saturday and Sunday, Friday and Saturday, or holidays."""
    first = np.where(chance(rng, 0.08, len(weekday)), 4, 5)[:, None]
    holiday_share = log_uniform(rng, 0.003, 0.05, (len(weekday), 1))
    holiday = rng.random(weekday.shape) < holiday_share
    return np.asarray((weekday == first) | (weekday == first + 1) | holiday, dtype=np.bool_)


def _hours(
    rng: np.random.Generator,
    local: LocalTime,
    weekend: NDArray[np.bool_],
    profiles: NDArray[np.float32],
) -> NDArray[np.float32]:
    """(N, L) profile (N, 2, G + 1) at every sample; days start a little early or late in half."""
    rows = len(weekend)
    jitter = rng.normal(0.0, 1.0, weekend.shape) * log_uniform(rng, 0.05, 0.6, (rows, 1)) / 24.0
    jitter[chance(rng, 0.5, rows)] = 0.0
    jitter_at = np.take_along_axis(jitter.astype(np.float32), local.day, axis=1)
    position = (local.day_ratio + jitter_at) % np.float32(1.0) * GRID
    point = np.minimum(position.astype(np.intp), GRID - 1)
    weight = position - point
    point += np.take_along_axis(weekend, local.day, axis=1) * (GRID + 1)
    point += (np.arange(rows) * (2 * (GRID + 1)))[:, None]
    flat = profiles.ravel()
    return np.asarray(flat[point] * (1.0 - weight) + flat[point + 1] * weight, dtype=np.float32)


def _day_levels(
    rng: np.random.Generator, weekday: NDArray[np.int64], weekend: NDArray[np.bool_]
) -> NDArray[np.float32]:
    """(N, D) level of each day: weekday factors, a weekend factor, and days that just differ."""
    rows = len(weekday)
    sigma = rng.uniform(0.0, 0.25, (rows, 1))
    by_weekday = sigma * rng.standard_normal((rows, 7))
    log_level = np.take_along_axis(by_weekday, weekday, axis=1)
    log_level += weekend * rng.normal(-0.15, 0.4, (rows, 1))
    log_level += rng.uniform(0.0, 0.35, (rows, 1)) * rng.standard_normal(weekday.shape)
    return np.exp(log_level).astype(np.float32)


def _trend(rng: np.random.Generator, clock: Clock) -> NDArray[np.float32]:
    """(N, L) slow course of the log level: growth, up to two level shifts, wander."""
    rows, length = clock.rows, clock.length
    days = clock.days_since_start()
    per_day = rng.normal(0.0, 0.006, rows) * chance(rng, 0.6, rows)
    per_day *= np.where(chance(rng, 0.15, rows), 5.0, 1.0)
    growth = per_day[:, None].astype(np.float32) * days
    trend = 2.0 * np.tanh(growth / 2.0)  # bounded, or years of daily data would overflow
    for probability in (0.2, 0.1):
        size = rng.normal(0.0, 0.5, (rows, 1)) * chance(rng, probability, rows)[:, None]
        trend += size * (np.arange(length) >= rng.uniform(0.0, length, (rows, 1)))
    wander = log_uniform(rng, 0.05, 0.5, (rows, 1)) * chance(rng, 0.4, rows)[:, None]
    trend += wander * slow_curve(rng, rows, length, int(np.clip(days[-1] * 1.5, 4, 64)))
    return np.asarray(trend, dtype=np.float32)


def _event_evenings(rng: np.random.Generator, local: LocalTime) -> NDArray[np.float32]:
    """(N, L) added load of match evenings; one cell in ten lies at a stadium."""
    out = np.zeros_like(local.day_ratio)
    stadiums = np.flatnonzero(chance(rng, 0.1, len(out)))
    if not len(stadiums):
        return out
    days = local.weekday.shape[1]
    shape = (len(stadiums), days)
    held = rng.random(shape) < log_uniform(rng, 0.05, 0.3, (len(stadiums), 1))
    usual_start = rng.uniform(16.0, 21.0, (len(stadiums), 1))
    start = (usual_start + rng.normal(0.0, 0.7, shape)) / 24.0
    duration = rng.uniform(1.5, 4.0, (len(stadiums), 1)) / 24.0
    size = held * log_uniform(rng, 0.7, 8.0, (len(stadiums), 1)) * rng.uniform(0.6, 1.4, shape)
    day = local.day[stadiums]
    since = local.day_ratio[stadiums] - np.take_along_axis(start, day, axis=1)
    hump = np.clip(1.0 - np.abs(2.0 * since / duration - 1.0), 0.0, 0.5) * 2.0
    out[stadiums] = hump * np.take_along_axis(size, day, axis=1)
    return out


def _floored(rng: np.random.Generator, level: NDArray[np.float32]) -> NDArray[np.float32]:
    """Cells that fall to zero in quiet hours (8 %)."""
    chosen = np.flatnonzero(chance(rng, 0.08, len(level)))
    floor = rng.uniform(0.05, 0.5, (len(chosen), 1)).astype(np.float32)
    level[chosen] = np.maximum(level[chosen] - floor, 0.0)
    return level


def _capped(rng: np.random.Generator, level: NDArray[np.float32]) -> NDArray[np.float32]:
    """Cells that run into a limit: hard for 12 %, softly for 10 %."""
    kind = rng.random(len(level))
    hard, soft = np.flatnonzero(kind < 0.12), np.flatnonzero((kind >= 0.12) & (kind < 0.22))
    limit = log_uniform(rng, 1.0, 3.5, (len(level), 1))
    level[hard] = np.minimum(level[hard], limit[hard])
    level[soft] = limit[soft] * np.tanh(level[soft] / limit[soft])
    return level
