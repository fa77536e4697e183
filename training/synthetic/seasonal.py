"""Cells with daily and weekly life: profile x weekday x day level x trend x noise.

Everything multiplies, because quiet hours are quiet in every respect. Seasons follow the absolute
clock in a local time that differs by cell.

Axes: N series, L samples, D local days.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from training.synthetic.filters import (
    autoregressive,
    chance,
    geometric_filter,
    log_uniform,
    slow_curve,
    unit_mean,
)
from training.synthetic.noise import bursts, heavy_scale, white_factor
from training.synthetic.planned import Planned
from training.synthetic.profile import GRID, day_profiles
from training.synthetic.segments import draw_segments, rasterise
from training.synthetic.timing import HOUR_MS, MINUTE_MS, Clock, LocalTime

_DENSE_SAMPLES_PER_DAY = 144
_BIG_SHARE = 0.12
_KNOTS_A_DAY = 6
_MOST_LEVEL = np.float32(60.0)


def seasonal_cells(
    rng: np.random.Generator, clock: Clock, planned: Planned, held_out: bool
) -> NDArray[np.float32]:
    """(N, L) non-negative activity of mean 1 with the seasons of `clock` and what is planned."""
    local = clock.local(_zone_shifts(rng, clock.rows))
    rows, length = clock.rows, clock.length
    weekend = _weekends(rng, local, planned)
    level = _hours(rng, local, weekend, day_profiles(rng, rows, held_out))
    # Whole networks and big sites average their users' whims away.
    big = chance(rng, _BIG_SHARE, rows)
    calm = np.where(big, log_uniform(rng, 0.05, 0.3, rows), 1.0)[:, None].astype(np.float32)
    dense = clock.samples_per_day >= _DENSE_SAMPLES_PER_DAY
    day_level = _day_levels(rng, local.weekday, weekend, calm)
    log_level = _trend(rng, clock)
    fast = chance(rng, 0.75 if dense else 0.6, rows)
    log_level += calm * _memory(rng, clock, fast, dense=dense)
    level *= np.take_along_axis(day_level, local.day, axis=1)
    level *= _event_factor(rng, planned)
    level *= np.exp(np.clip(log_level, -6.0, 6.0))
    if dense:
        level *= _plateaus(rng, rows, length)
    level = unit_mean(level)
    # Where noise has a memory, less of it is without one.
    quiet = calm * np.where(fast, 0.45 if dense else 0.7, 1.0)[:, None].astype(np.float32)
    level *= white_factor(rng, level, quiet, dense=dense, held_out=held_out)
    level *= np.where(big[:, None], np.float32(1.0), bursts(rng, rows, length))
    return unit_mean(_capped(rng, _floored(rng, _bent(rng, level))))


def _memory(
    rng: np.random.Generator, clock: Clock, fast: NDArray[np.bool_], *, dense: bool
) -> NDArray[np.float32]:
    """(N, L) noise of the log level that lasts: for a few samples, for tens, for hours of a day.

    `fast` (N,) marks the series whose noise lasts for a few samples only; in dense sampling these
    have a slower part besides.
    """
    rows, length = clock.rows, clock.length
    longest = 200.0 if dense else 60.0
    slow_steps = log_uniform(rng, 0.7, longest, rows)
    course = log_uniform(rng, 0.02, 0.8, (rows, 1)) * autoregressive(
        rng, length, np.exp(-1.0 / slow_steps)
    )
    if not dense:
        course[fast] *= 0.5
    if fast.any():
        strength = log_uniform(rng, 0.1, 0.8, (int(fast.sum()), 1))
        ratio = np.exp(-1.0 / log_uniform(rng, 0.4, 8.0 if dense else 3.0, int(fast.sum())))
        course[fast] += strength * _restless(rng, length, ratio)
    days = clock.length / clock.samples_per_day
    knots = int(np.clip(days * _KNOTS_A_DAY, 4, length // 2))
    unlike = np.flatnonzero(chance(rng, 0.65 if dense else 0.4, rows))
    strength = log_uniform(rng, 0.1, 1.0 if dense else 0.8, (len(unlike), 1))
    # Each day has a shape of its own, not only a level: a match, the weather, a school trip.
    course[unlike] += strength * slow_curve(rng, len(unlike), length, knots)
    return np.asarray(course, dtype=np.float32)


def _restless(
    rng: np.random.Generator, length: int, ratio: NDArray[np.float32]
) -> NDArray[np.float32]:
    """(N, L) AR(1) noise of about unit variance whose shocks are heavy-tailed in most series."""
    shocks = rng.standard_normal((len(ratio), length), dtype=np.float32)
    heavy = np.flatnonzero(chance(rng, 0.6, len(ratio)))
    shocks[heavy] *= heavy_scale(rng, len(heavy), length)
    shocks[:, 1:] *= np.sqrt(1.0 - ratio**2)[:, None]
    return geometric_filter(np.clip(shocks, -6.0, 6.0), ratio)


def _plateaus(rng: np.random.Generator, rows: int, length: int) -> NDArray[np.float32]:
    """(N, L) factors of busy spells that begin and end at once, in 15 % of the series."""
    out = np.ones((rows, length), dtype=np.float32)
    chosen = np.flatnonzero(chance(rng, 0.15, rows))
    if len(chosen):
        segments = draw_segments(
            rng,
            log_uniform(rng, 10.0, 300.0, len(chosen)),
            log_uniform(rng, 30.0, 900.0, len(chosen)),
            np.full(len(chosen), 0.8, dtype=np.float32),
            length,
        )
        size = log_uniform(rng, 1.5, 12.0, len(chosen)) - 1.0
        out[chosen] += rasterise(segments, size[segments.row].astype(float), len(chosen), length)
    return out


def _bent(rng: np.random.Generator, level: NDArray[np.float32]) -> NDArray[np.float32]:
    """Cells that idle at a small share of their mean between busy spells (12 %)."""
    chosen = np.flatnonzero(chance(rng, 0.12, len(level)))
    power = rng.uniform(1.4, 3.0, (len(chosen), 1)).astype(np.float32)
    level[chosen] = np.minimum(level[chosen], _MOST_LEVEL) ** power
    return level


def _zone_shifts(rng: np.random.Generator, rows: int) -> NDArray[np.int64]:
    """(N,) local time less UTC: none, small, or any time zone, since networks label zones badly."""
    zone_ms = rng.integers(-12, 13, rows) * HOUR_MS
    near_ms = rng.normal(0.0, 60.0, rows).astype(np.int64) * MINUTE_MS
    kind = rng.random(rows)
    return np.where(kind < 0.4, 0, np.where(kind < 0.75, near_ms, zone_ms + near_ms))


def _weekends(rng: np.random.Generator, local: LocalTime, planned: Planned) -> NDArray[np.bool_]:
    """(N, D) days that run as weekends: two days a week, public holidays, and days off by chance.

    One cell in twelve takes no notice of public holidays.
    """
    rows = len(local.weekday)
    first = np.where(chance(rng, 0.08, rows), 4, 5)[:, None]
    column = np.clip(local.number - planned.first_day[:, None], 0, planned.holidays.shape[1] - 1)
    holiday = np.take_along_axis(planned.holidays, column, axis=1)
    holiday &= chance(rng, 11 / 12, rows)[:, None]
    off_share = log_uniform(rng, 0.003, 0.05, (rows, 1)) * chance(rng, 0.4, rows)[:, None]
    off = rng.random(local.weekday.shape) < off_share
    weekday = local.weekday
    return np.asarray((weekday == first) | (weekday == first + 1) | holiday | off, dtype=np.bool_)


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
    rng: np.random.Generator,
    weekday: NDArray[np.int64],
    weekend: NDArray[np.bool_],
    calm: NDArray[np.float32],
) -> NDArray[np.float32]:
    """(N, D) level of each day: weekday factors, a weekend factor, and days that just differ.

    Homes are busier at weekends, offices much less; `calm` (N, 1) damps what just differs.
    """
    rows = len(weekday)
    sigma = rng.uniform(0.0, 0.25, (rows, 1))
    by_weekday = sigma * rng.standard_normal((rows, 7))
    log_level = np.take_along_axis(by_weekday, weekday, axis=1)
    homes = rng.normal(0.25, 0.25, (rows, 1))
    others = rng.normal(-0.25, 0.4, (rows, 1))
    log_level += weekend * np.where(chance(rng, 0.55, rows)[:, None], homes, others)
    log_level += calm * rng.uniform(0.0, 0.35, (rows, 1)) * rng.standard_normal(weekday.shape)
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


def _event_factor(rng: np.random.Generator, planned: Planned) -> NDArray[np.float32]:
    """(N, L) what events multiply the load by: mostly more, for some KPIs less or nothing."""
    rows = len(planned.event_load)
    size = log_uniform(rng, 0.3, 8.0, (rows, 1))
    kind = rng.random((rows, 1))
    size = np.where(kind < 0.1, -rng.uniform(0.2, 0.95, (rows, 1)), size)  # a street is closed
    size = np.where(kind > 0.9, 0.0, size).astype(np.float32)
    return 1.0 + size * planned.event_load


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
