"""Seasonal rules: forecasts by the mean of past periods, and what their own past errors say.

Many series are worked on at a time, because each alone takes numpy longer to begin than to do.

Axis legend: R series, T samples, H steps, L levels, N repeats of the season.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.lags import DAY_MS, WEEK_MS, period_steps

FEWEST_ERRORS = 20


@dataclass(frozen=True)
class Rule:
    """A way to forecast: the mean of the samples one to `repeats` periods back.

    Attributes:
        name: For reports.
        period: Steps between repeats.
        repeats: How many are averaged.
    """

    name: str
    period: int
    repeats: int


LAST_VALUE = "last value"
SEASONS = {
    "daily naive": (DAY_MS, 1),
    "weekly naive": (WEEK_MS, 1),
    "daily mean": (DAY_MS, 7),
    "weekly mean": (WEEK_MS, 4),
}
"""Seasonal rules by name: length of the period and how many of them are averaged."""

DEFAULT_RULES = (LAST_VALUE, "daily mean", "weekly mean")


def seasonal_rules(step_ms: int, steps: int, names: Sequence[str] = DEFAULT_RULES) -> list[Rule]:
    """The rules of `names` that `steps` samples can be judged by: at least two periods of them.

    The last value where none can.
    """
    rules = [Rule(LAST_VALUE, 1, 1)] if LAST_VALUE in names else []
    for name in names:
        period_ms, repeats = SEASONS.get(name, (0, 0))
        period = period_steps(period_ms, step_ms) if period_ms else None
        if period is not None and 2 * period <= steps:
            rules.append(Rule(name, period, repeats))
    return rules or [Rule(LAST_VALUE, 1, 1)]


def apply_rule(rule: Rule, series: NDArray[np.float64], horizon: int) -> NDArray[np.float64]:
    """Point forecasts (R, H) of series (R, T); NaN where no repeat was seen."""
    steps = series.shape[1]
    position = np.arange(steps, steps + horizon)
    back = (position - steps) // rule.period + 1
    index = position - rule.period * (back + np.arange(rule.repeats)[:, None])  # (N, H)
    return _mean_seen([np.where(row >= 0, series[:, np.maximum(row, 0)], np.nan) for row in index])


def past_errors(rule: Rule, series: NDArray[np.float64], lead: int) -> NDArray[np.float64]:
    """Errors (R, T) of the rule within series (R, T) when it looks `lead` steps ahead.

    NaN where a sample is missing, or the rule has nothing to look back at. A seasonal rule looks
    back by whole periods whatever the lead (up to one period).
    """
    gap = _gap(rule, lead)
    errors: NDArray[np.float64] = series - _mean_seen(
        [_shifted(series, gap + rule.period * repeat) for repeat in range(rule.repeats)]
    )
    return errors


def mean_costs(rule: Rule, series: NDArray[np.float64], horizon: int) -> NDArray[np.float64]:
    """Mean absolute errors (R,) of the rule in the middle of the horizon, infinite if unknown.

    One step ahead the last value nearly always wins, so that is only asked where the series is too
    short for anything else.
    """
    costs = np.full(len(series), np.inf)
    for lead in (_middle_lead(horizon), 1):
        unknown = np.flatnonzero(np.isinf(costs))
        if not len(unknown):
            break
        sizes = np.abs(past_errors(rule, series[unknown], lead))
        seen = ~np.isnan(sizes)
        count = seen.sum(axis=1)
        means = np.where(seen, sizes, 0).sum(axis=1) / np.maximum(count, 1)
        costs[unknown] = np.where(count >= FEWEST_ERRORS, means, np.inf)
    return costs


def error_quantiles(
    rule: Rule, series: NDArray[np.float64], horizon: int, levels: Sequence[float]
) -> NDArray[np.float64]:
    """Quantiles of past errors (R, H, L), measured at a few leads and interpolated between them.

    Args:
        rule: One with a finite cost for every series.
        series: (R, T).
        horizon: H.
        levels: Ascending.
    """
    first, last = 1, horizon
    if rule.period > 1:
        first, last = rule.period, rule.period * -(-horizon // rule.period)
    doublings = (first * 2**k for k in range(14) if first * 2**k < last)
    leads = sorted({*doublings, _middle_lead(horizon), last})
    by_gap: dict[int, tuple[NDArray[np.float64], NDArray[np.bool_]]] = {}
    for lead in leads:
        gap = _gap(rule, lead)
        if gap not in by_gap:
            by_gap[gap] = _quantiles_seen(past_errors(rule, series, lead), levels)
    tables = np.stack([by_gap[_gap(rule, lead)][0] for lead in leads], axis=1)  # (R, leads, L)
    known = np.stack([by_gap[_gap(rule, lead)][1] for lead in leads], axis=1)  # (R, leads)
    offsets = np.empty((len(series), horizon, len(levels)))
    steps = np.arange(1, horizon + 1)
    patterns, pattern_of = np.unique(known, axis=0, return_inverse=True)
    for number, kept in enumerate(patterns):
        rows = pattern_of.reshape(-1) == number
        weights = _interpolation(steps, np.array(leads)[kept])  # (H, leads kept)
        offsets[rows] = np.einsum("hk,rkl->rhl", weights, tables[rows][:, kept])
    return np.sort(offsets, axis=2)


def last_seen(series: NDArray[np.float64]) -> NDArray[np.float64]:
    """The last value (R,) of each series (R, T) that has one, NaN for the others."""
    seen = ~np.isnan(series)
    place = series.shape[1] - 1 - np.argmax(seen[:, ::-1], axis=1)
    last: NDArray[np.float64] = series[np.arange(len(series)), place]
    return last


def _gap(rule: Rule, lead: int) -> int:
    return rule.period * -(-lead // rule.period)


def _middle_lead(horizon: int) -> int:
    return (horizon + 1) // 2


def _shifted(series: NDArray[np.float64], by: int) -> NDArray[np.float64]:
    """Series (R, T) moved to later samples; NaN where nothing comes from."""
    moved = np.full_like(series, np.nan)
    if by < series.shape[1]:
        moved[:, by:] = series[:, : series.shape[1] - by]
    return moved


def _mean_seen(parts: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Mean of arrays of one shape over what is not NaN; NaN where nothing is."""
    if len(parts) == 1:
        return parts[0]
    total, count = np.zeros_like(parts[0]), np.zeros_like(parts[0])
    for part in parts:
        seen = ~np.isnan(part)
        np.add(total, part, out=total, where=seen)
        count += seen
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)


def _quantiles_seen(
    errors: NDArray[np.float64], levels: Sequence[float]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Quantiles (R, L) of errors (R, T) over what is not NaN, and where there are enough (R,)."""
    ordered = np.sort(errors, axis=1)  # NaN comes last
    count = (~np.isnan(errors)).sum(axis=1)
    place = np.asarray(levels) * np.maximum(count - 1, 0)[:, None]  # (R, L)
    low = np.floor(place).astype(np.int64)
    high = np.minimum(low + 1, np.maximum(count - 1, 0)[:, None])
    below = np.take_along_axis(ordered, low, axis=1)
    above = np.take_along_axis(ordered, high, axis=1)
    quantiles: NDArray[np.float64] = below + (place - low) * (above - below)
    return quantiles, count >= FEWEST_ERRORS


def _interpolation(at: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.float64]:
    """Weights (H, k) by which values at `known` give those `at`; held beyond the outermost."""
    return np.stack([np.interp(at, known, row) for row in np.eye(len(known))], axis=1)
