"""The load that users offer to a cell, as a share of what it can carry.

Load = busy-hour load x shape of the local day and week x growth x wandering noise, plus planned
events and unplanned bursts. It may exceed 1; what a cell then serves is decided in `radio.py`.

Axis legend: n instants, D days, B blocks of hours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from training.simulate.cell import Cell
from training.simulate.local_time import MS_PER_DAY, MS_PER_HOUR, LocalTime
from training.simulate.noise import (
    FloatArray,
    Stream,
    normals,
    slow_normal,
    smooth_step,
    uniforms,
)
from training.simulate.profiles import Bump, Profile

_MS_PER_YEAR = 365.25 * MS_PER_DAY
_YEARS_BETWEEN_UPGRADES = 2.0
# The night's change from one day's habits to the next is spread over these first hours.
_CHANGE_OF_DAY_HOURS = 3.0
_FRIDAY = 4
_BURST_BLOCK_MS = 6 * MS_PER_HOUR
_MOST_LOAD_RATIO = 4.0


@dataclass(frozen=True, slots=True)
class Instants:
    """The middles of consecutive periods, with what every cell needs to know of them.

    Attributes:
        first: Index of the first period: its begin divided by the period length.
        time_ms: int64 (n,).
        local: Local clock.
    """

    first: int
    time_ms: np.ndarray[tuple[int], np.dtype[np.int64]]
    local: LocalTime


def offered_load(seed: int, cell: Cell, instants: Instants) -> FloatArray:
    """Offered downlink load of a cell, (n,), 0 to about 4."""
    profile, time_ms = cell.profile, instants.time_ms
    log_noise = (
        0.05 * slow_normal(seed, Stream.SITE_DAY, cell.gnb, time_ms, MS_PER_DAY)
        + 0.08 * slow_normal(seed, Stream.CELL_HOURS, cell.index, time_ms, 5 * MS_PER_HOUR)
        + 0.06 * slow_normal(seed, Stream.CELL_MINUTES, cell.index, time_ms, MS_PER_HOUR)
        + profile.noise_ratio
        * normals(seed, Stream.CELL_PERIOD, cell.index, instants.first, len(time_ms), 1)[:, 0]
    )
    usual = cell.peak_load_ratio * day_shape(profile, instants.local, cell.shift_hours)
    load = usual * np.exp(log_noise) * _growth(cell, time_ms)
    load += _bursts(seed, cell, time_ms) + event_load(seed, cell, instants.local)
    clipped: FloatArray = np.minimum(load, _MOST_LOAD_RATIO)
    return clipped


def day_shape(profile: Profile, local: LocalTime, shift_hours: float = 0.0) -> FloatArray:
    """Usual load at local times as a share of the busy hour, (n,), positive."""
    hour = local.hour - shift_hours
    weekday, weekend = _bumps(profile.weekday, hour), _bumps(profile.weekend, hour)
    today = (local.weekday > _FRIDAY).astype(np.float64)
    yesterday = ((local.weekday - 1) % 7 > _FRIDAY).astype(np.float64)
    settled = smooth_step(local.hour / _CHANGE_OF_DAY_HOURS)
    is_weekend = yesterday + (today - yesterday) * settled
    shape: FloatArray = profile.floor + (1 - profile.floor) * (
        weekday * (1 - is_weekend) + weekend * is_weekend
    )
    return shape


def _bumps(bumps: Sequence[Bump], hour: FloatArray) -> FloatArray:
    """Sum of bumps on the circle of 24 hours, (n,)."""
    total = np.zeros_like(hour)
    for bump in bumps:
        distance = np.abs((hour - bump.hour + 12.0) % 24.0 - 12.0)
        total += bump.height * np.exp(-0.5 * (distance / bump.width_hours) ** 2)
    return total


def _growth(cell: Cell, time_ms: np.ndarray[tuple[int], np.dtype[np.int64]]) -> FloatArray:
    """Slow growth that a capacity upgrade takes back every other year, (n,), around 1."""
    years = time_ms / _MS_PER_YEAR + cell.upgrade_phase_ratio * _YEARS_BETWEEN_UPGRADES
    since_upgrade = years % _YEARS_BETWEEN_UPGRADES
    factor: FloatArray = np.exp(
        cell.profile.growth_per_year * (since_upgrade - _YEARS_BETWEEN_UPGRADES / 2)
    )
    return factor


def _bursts(
    seed: int, cell: Cell, time_ms: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> FloatArray:
    """Unplanned rises that begin within minutes and fade within an hour or two, (n,)."""
    if not len(time_ms):
        return np.zeros(0)
    probability = cell.profile.bursts_per_day * _BURST_BLOCK_MS / MS_PER_DAY
    block = time_ms // _BURST_BLOCK_MS
    first = int(block[0]) - 1
    drawn = uniforms(seed, Stream.BURST, cell.index, first, int(block[-1]) - first + 1, 4)  # (B, 4)
    begin_ms = (first + np.arange(len(drawn)) + drawn[:, 1]) * _BURST_BLOCK_MS  # (B,)
    height = cell.profile.burst_load_ratio * (0.5 + drawn[:, 2]) * (drawn[:, 0] < probability)
    fade_hours = 0.25 + 0.9 * drawn[:, 3]
    total = np.zeros(len(time_ms))
    for back in (0, 1):  # a burst reaches into the block after its own
        own = block - first - back  # (n,)
        age_hours = (time_ms - begin_ms[own]) / MS_PER_HOUR
        rise = smooth_step(age_hours / 0.2)
        total += height[own] * rise * np.exp(-np.maximum(age_hours, 0.0) / fade_hours[own])
    return total


def event_load(seed: int, cell: Cell, local: LocalTime) -> FloatArray:
    """Additional load of planned events, (n,): arrivals, the event, and a sharp departure."""
    habit = cell.profile.event
    total = np.zeros(len(local.hour))
    if habit is None or not len(total):
        return total
    first = int(local.day.min()) - 1
    days = int(local.day.max()) - first + 1
    drawn = uniforms(seed, Stream.EVENT, cell.gnb, first, days, 4)  # (D, 4)
    is_weekend = (np.arange(first, first + days) + 3) % 7 > _FRIDAY  # (D,)
    probability = np.where(is_weekend, habit.weekend_probability, habit.weekday_probability)
    begin = habit.start_hour[0] + np.ptp(habit.start_hour) * drawn[:, 1]  # (D,)
    length = habit.length_hours[0] + np.ptp(habit.length_hours) * drawn[:, 2]
    height = habit.load_ratio * (0.6 + 0.8 * drawn[:, 3]) * (drawn[:, 0] < probability)
    for back in (0, 1):  # the last guests leave after midnight
        own = local.day - first - back  # (n,)
        since_begin = local.hour + 24.0 * back - begin[own]
        since_end = since_begin - length[own]
        present = smooth_step(since_begin / 1.5 + 1.0) * (1.0 - smooth_step(since_end / 1.2))
        leaving = 0.3 * np.exp(-0.5 * ((since_end - 0.25) / 0.25) ** 2)
        total += height[own] * (present + leaving)
    return total
