"""Figures that tell one kind of cell from another: spread, memory, seasons, gaps, spikes.

Each is a pure number that does not depend on the unit, so that synthetic and real series can be
set side by side. A figure that a series is too short, too constant or too empty for is NaN.

Axes: N series, L samples, S samples of a day, D whole days.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
WEEK_MS = 7 * DAY_MS
_EPOCH_WEEKDAY = 3  # 1970-01-01 was a Thursday; Monday is 0
_LEAST_PAIRS = 16
_LEAST_DAYS_OF_A_WEEK = 14
_SPIKE_MULTIPLE = 3.0
_NEIGHBOURS = 3
_LEAST_POSITIVE = 1e-3
_BUSY_RATIO = 0.05

Figures = NDArray[np.float64]


@dataclass(frozen=True)
class Series:
    """Series of one sampling step.

    Attributes:
        values: (N, L) NaN where missing.
        start_ms: (N,) begin of sample 0 on the clock that days are counted by.
        step_ms: Sampling step.
    """

    values: NDArray[np.float32]
    start_ms: NDArray[np.int64]
    step_ms: int

    def relative(self) -> NDArray[np.float64]:
        """(N, L) values over their mean magnitude; a series of zeros stays zero."""
        values = self.values.astype(np.float64)
        level = _quietly(np.nanmean, np.abs(values), keepdims=True)
        return np.asarray(values / np.where(level > 0, level, 1.0))


Figure = Callable[[Series, NDArray[np.float64]], Figures]
"""From series and their values over the mean to one number a series."""


def autocorrelation(relative: NDArray[np.float64], lag: int) -> Figures:
    """(N,) correlation of samples `lag` steps apart, over the pairs that are both present."""
    rows, length = relative.shape
    if lag < 1 or length - lag < _LEAST_PAIRS:
        return np.full(rows, np.nan)
    early, late = relative[:, :-lag], relative[:, lag:]
    both = ~np.isnan(early) & ~np.isnan(late)
    pairs = both.sum(axis=1)
    enough = pairs >= _LEAST_PAIRS

    def centred(part: NDArray[np.float64]) -> NDArray[np.float64]:
        mean = np.where(both, part, 0.0).sum(axis=1) / np.maximum(pairs, 1)
        return np.where(both, part - mean[:, None], 0.0)

    first, second = centred(early), centred(late)
    power = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    usable = enough & (power > 1e-9 * np.maximum(pairs, 1))
    return np.where(usable, (first * second).sum(axis=1) / np.where(usable, power, 1.0), np.nan)


def by_day(series: Series, relative: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """(N, D, S) the samples of whole days, midnight first; None where days are not sampled."""
    if series.step_ms > HOUR_MS or DAY_MS % series.step_ms:
        return None
    per_day = DAY_MS // series.step_ms
    days = relative.shape[1] // per_day - 1
    if days < 1:
        return None
    skip = (-(series.start_ms // series.step_ms)) % per_day
    index = skip[:, None] + np.arange(days * per_day)
    return np.take_along_axis(relative, index, axis=1).reshape(len(relative), days, per_day)


def _variation(series: Series, relative: NDArray[np.float64]) -> Figures:
    del series
    return _quietly(np.nanstd, relative)


def _zeros(series: Series, relative: NDArray[np.float64]) -> Figures:
    """Share of exact zeros among the samples present."""
    del series
    present = ~np.isnan(relative)
    return np.asarray((relative == 0).sum(axis=1) / np.maximum(present.sum(axis=1), 1))


def _missing(series: Series, relative: NDArray[np.float64]) -> Figures:
    del series
    return np.asarray(np.isnan(relative).mean(axis=1))


def _repeats(series: Series, relative: NDArray[np.float64]) -> Figures:
    """Share of samples that equal the one before."""
    del series
    change = np.diff(relative, axis=1)
    present = (~np.isnan(change)).sum(axis=1)
    return np.asarray(np.where(present > 0, (change == 0).sum(axis=1) / np.maximum(present, 1), 0))


def _peak(series: Series, relative: NDArray[np.float64]) -> Figures:
    """The 99 % quantile over the mean."""
    del series
    return _quietly(np.nanquantile, relative, q=0.99)


def _trough(series: Series, relative: NDArray[np.float64]) -> Figures:
    """The 5 % quantile over the mean."""
    del series
    return _quietly(np.nanquantile, relative, q=0.05)


def _roughness(series: Series, relative: NDArray[np.float64]) -> Figures:
    """Median step from one sample to the next, over the mean."""
    del series
    return _quietly(np.nanmedian, np.abs(np.diff(relative, axis=1)))


def _log_steps(relative: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N, L - 1) steps of the logarithm to base 2; NaN beside zeros and gaps."""
    positive = np.where(relative > _LEAST_POSITIVE, relative, np.nan)
    return np.asarray(np.diff(np.log2(positive), axis=1), dtype=np.float64)


def _noise_size(series: Series, relative: NDArray[np.float64]) -> Figures:
    """Median relative step from one sample to the next."""
    del series
    return _quietly(np.nanmedian, np.abs(_log_steps(relative)))


def _noise_memory(series: Series, relative: NDArray[np.float64]) -> Figures:
    """Correlation of successive relative steps: -0.5 for white noise, 0 for a random walk."""
    del series
    return autocorrelation(_log_steps(relative), 1)


def _noise_tail(series: Series, relative: NDArray[np.float64]) -> Figures:
    """The 99 % quantile of relative steps over their median: 3.8 where they are normal."""
    del series
    size = np.abs(_log_steps(relative))
    usual = _quietly(np.nanmedian, size)
    high = _quietly(np.nanquantile, size, q=0.99)
    return np.where(usual > 0, high / np.where(usual > 0, usual, 1.0), np.nan)


def _busy_spell(series: Series, relative: NDArray[np.float64]) -> Figures:
    """Mean steps in a row over a twentieth of the mean; NaN where there is no such beginning."""
    del series
    busy = relative > _BUSY_RATIO
    begins = (busy[:, 1:] & ~busy[:, :-1]).sum(axis=1)
    return np.where(begins > 0, busy.sum(axis=1) / np.maximum(begins, 1), np.nan)


def _spikes(series: Series, relative: NDArray[np.float64]) -> Figures:
    """Share of samples over three times the median of their six neighbours and over the mean."""
    del series
    reach = 2 * _NEIGHBOURS + 1
    if relative.shape[1] < reach:
        return np.full(len(relative), np.nan)
    around = np.lib.stride_tricks.sliding_window_view(relative, reach, axis=1)
    beside = np.delete(np.arange(reach), _NEIGHBOURS)
    usual = _quietly(np.nanmedian, around[:, :, beside])
    middle = around[:, :, _NEIGHBOURS]
    high = (middle > _SPIKE_MULTIPLE * usual) & (middle > 1.0)
    return np.asarray(high.sum(axis=1) / np.maximum((~np.isnan(middle)).sum(axis=1), 1))


def _growth(series: Series, relative: NDArray[np.float64]) -> Figures:
    """Mean of the last third over the mean of the first, as a logarithm to base 2."""
    del series
    third = relative.shape[1] // 3
    first = _quietly(np.nanmean, relative[:, :third])
    return _log2_ratio(_quietly(np.nanmean, relative[:, -third:]), first)


def _day_swing(series: Series, relative: NDArray[np.float64]) -> Figures:
    """Standard deviation of the mean day, over the mean: how much a day has of a profile."""
    days = by_day(series, relative)
    if days is None:
        return np.full(len(relative), np.nan)
    return _quietly(np.nanstd, _hourly(_quietly(np.nanmean, days, axis=1)))


def _night(series: Series, relative: NDArray[np.float64]) -> Figures:
    """Least hour of the mean day over its greatest."""
    days = by_day(series, relative)
    if days is None:
        return np.full(len(relative), np.nan)
    hours = _hourly(_quietly(np.nanmean, days, axis=1))
    low, high = _quietly(np.nanmin, hours), _quietly(np.nanmax, hours)
    return np.where(high > 0, low / np.where(high > 0, high, 1.0), np.nan)


def _day_to_day(series: Series, relative: NDArray[np.float64]) -> Figures:
    """Median change of a day's mean from one day to the next, as a logarithm to base 2."""
    means = _day_means(series, relative)
    if means is None:
        return np.full(len(relative), np.nan)
    return _quietly(np.nanmedian, np.abs(_log2_ratio(means[:, 1:], means[:, :-1])))


def _weekday_effect(series: Series, relative: NDArray[np.float64]) -> Figures:
    """Standard deviation of the weekdays' means over the mean, from two whole weeks on."""
    means = _day_means(series, relative)
    if means is None or means.shape[1] < _LEAST_DAYS_OF_A_WEEK:
        return np.full(len(relative), np.nan)
    weeks = means.shape[1] // 7
    by_weekday = means[:, : weeks * 7].reshape(len(means), weeks, 7)
    return _quietly(np.nanstd, _quietly(np.nanmean, by_weekday, axis=1))


def _weekend_ratio(series: Series, relative: NDArray[np.float64]) -> Figures:
    """Mean of Saturdays and Sundays over that of the other days, as a logarithm to base 2."""
    means = _day_means(series, relative)
    if means is None or means.shape[1] < _LEAST_DAYS_OF_A_WEEK:
        return np.full(len(relative), np.nan)
    first_day = -(-series.start_ms // DAY_MS)
    weekday = (first_day[:, None] + np.arange(means.shape[1]) + _EPOCH_WEEKDAY) % 7
    ends = _quietly(np.nanmean, np.where(weekday >= 5, means, np.nan))
    return _log2_ratio(ends, _quietly(np.nanmean, np.where(weekday < 5, means, np.nan)))


def _lag(steps: int) -> Figure:
    def correlation(series: Series, relative: NDArray[np.float64]) -> Figures:
        del series
        return autocorrelation(relative, steps)

    return correlation


def _lag_of(lag_ms: int) -> Figure:
    """The same of a time; NaN where it is not a whole number of steps, and more than one."""

    def correlation(series: Series, relative: NDArray[np.float64]) -> Figures:
        whole = lag_ms % series.step_ms == 0 and lag_ms > series.step_ms
        return autocorrelation(relative, lag_ms // series.step_ms if whole else 0)

    return correlation


STATISTICS: Mapping[str, Figure] = {
    "autocorrelation, one step": _lag(1),
    "autocorrelation, ten steps": _lag(10),
    "autocorrelation, an hour": _lag_of(HOUR_MS),
    "autocorrelation, a day": _lag_of(DAY_MS),
    "autocorrelation, a week": _lag_of(WEEK_MS),
    "coefficient of variation": _variation,
    "peak (99 %) over mean": _peak,
    "trough (5 %) over mean": _trough,
    "median step over mean": _roughness,
    "relative step, median of log2": _noise_size,
    "relative steps, memory": _noise_memory,
    "relative steps, tail": _noise_tail,
    "busy spell, steps": _busy_spell,
    "spikes, share of samples": _spikes,
    "zeros, share of samples": _zeros,
    "repeats, share of samples": _repeats,
    "missing, share of samples": _missing,
    "day profile, spread over mean": _day_swing,
    "night over peak of the mean day": _night,
    "day to day change, log2": _day_to_day,
    "weekday effect over mean": _weekday_effect,
    "weekend over week, log2": _weekend_ratio,
    "growth, last third over first, log2": _growth,
}


def describe(series: Series) -> dict[str, Figures]:
    """Every figure of `STATISTICS`, (N,) each."""
    relative = series.relative()
    return {name: figure(series, relative) for name, figure in STATISTICS.items()}


def _day_means(series: Series, relative: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """(N, D) mean of every whole day; None with fewer than two."""
    if series.step_ms == DAY_MS:
        return relative if relative.shape[1] > 1 else None
    days = by_day(series, relative)
    return None if days is None or days.shape[1] < 2 else _quietly(np.nanmean, days, axis=2)


def _hourly(profile: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N, 24) hourly means of a day's profile (N, S), so that dense noise is no season."""
    return _quietly(np.nanmean, profile.reshape(len(profile), 24, profile.shape[1] // 24), axis=2)


def _log2_ratio(upper: NDArray[np.float64], lower: NDArray[np.float64]) -> NDArray[np.float64]:
    usable = (upper > 0) & (lower > 0)
    ratio = np.where(usable, upper, 1.0) / np.where(usable, lower, 1.0)
    return np.where(usable, np.log2(ratio), np.nan)


def _quietly(
    reduce: Callable[..., object], values: NDArray[np.float64], axis: int = -1, **options: object
) -> NDArray[np.float64]:
    """A NaN-aware reduction; slices of nothing but NaN give NaN without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(reduce(values, axis=axis, **options), dtype=np.float64)
