"""The seasonal baseline: a mean of what the season says, with quantiles of its own past errors.

It needs no weights, is never far wrong, and is the bar that the Transformer has to clear. Per KPI
the rule with the least error on the window itself is taken: the mean over the last days, the mean
over the last weeks, or the last value.

Axis legend: K KPIs, T samples, H steps, L levels, R repeats of the season.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from kpi.catalogue import Catalogue, Kpi
from kpi.window import KpiWindow
from model.config import TRAINED_LEVELS
from model.errors import HorizonError, ModelError
from model.lags import DAY_MS, WEEK_MS, period_steps
from model.predictor import ContextSpan, Forecast, ModelIdentity, Rung
from model.quantiles import as_float32, check_levels, uninformed

MAX_HORIZON_STEPS = 10_000
MAX_CONTEXT_STEPS = 6_000
FEWEST_ERRORS = 20
SPARSE_SPREAD_RATIO = 0.5


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


class SeasonalBaseline:
    """The best of a few rules on the window itself, with empirical quantiles."""

    def __init__(
        self,
        catalogue: Catalogue,
        rules: Sequence[str] = DEFAULT_RULES,
        *,
        level_range: tuple[float, float] = (TRAINED_LEVELS[0], TRAINED_LEVELS[-1]),
    ) -> None:
        """Choose among `rules`; a window too short for all of them gets its last value.

        Args:
            catalogue: KPI catalogue.
            rules: Names of the rules.
            level_range: Lowest and highest level to answer; beyond the default most windows hold
                too few errors to tell.

        Raises:
            ModelError: A rule that is not known.
        """
        if unknown := [name for name in rules if name not in (LAST_VALUE, *SEASONS)]:
            raise ModelError(f"expected rules from {[LAST_VALUE, *SEASONS]}, got {unknown}")
        self._catalogue = catalogue
        self._rules = tuple(rules)
        self._level_range = level_range

    @property
    def identity(self) -> ModelIdentity:
        """Who answers; the digest is empty because there are no weights."""
        name = "seasonal baseline" if self._rules == DEFAULT_RULES else ", ".join(self._rules)
        return ModelIdentity(name, "1", "")

    @property
    def max_horizon(self) -> int:
        """Longest horizon in steps."""
        return MAX_HORIZON_STEPS

    @property
    def level_range(self) -> tuple[float, float]:
        """Lowest and highest level that is answered."""
        return self._level_range

    def predict(
        self, windows: Sequence[KpiWindow], horizon: int, levels: Sequence[float]
    ) -> list[Forecast]:
        """Forecast each window; see `Predictor.predict`."""
        if not 1 <= horizon <= MAX_HORIZON_STEPS:
            raise HorizonError(
                f"expected a horizon of 1 to {MAX_HORIZON_STEPS} steps, got {horizon}"
            )
        check_levels(levels, *self.level_range)
        return [self._predict_one(window, horizon, levels) for window in windows]

    def _predict_one(self, window: KpiWindow, horizon: int, levels: Sequence[float]) -> Forecast:
        context = window.values[:, -MAX_CONTEXT_STEPS:].astype(np.float64)
        values = np.empty((len(window.kpis), horizon, len(levels)), dtype=np.float32)
        for row, name in enumerate(window.kpis):
            kpi = self._catalogue.resolve(name)
            quantiles = self._quantiles(context[row], kpi, window.step_ms, horizon, levels)
            values[row] = as_float32(quantiles)
        return Forecast(
            cell=window.cell,
            kpis=window.kpis,
            start_ms=window.end_ms,
            step_ms=window.step_ms,
            levels=tuple(levels),
            values=values,
            model=self.identity,
            rung=Rung.BASELINE,
            context=ContextSpan.of(window, MAX_CONTEXT_STEPS),
        )

    def _quantiles(
        self,
        series: NDArray[np.float64],
        kpi: Kpi,
        step_ms: int,
        horizon: int,
        levels: Sequence[float],
    ) -> NDArray[np.float64]:
        """Quantiles (H, L) of one KPI within its limits."""
        seen = series[~np.isnan(series)]
        if not len(seen):
            return np.broadcast_to(uninformed(kpi, levels), (horizon, len(levels)))
        rules = seasonal_rules(step_ms, len(series), self._rules)
        costs = [_mean_cost(rule, series, horizon) for rule in rules]
        if not np.isfinite(min(costs)):
            spread = max(float(seen.std()), SPARSE_SPREAD_RATIO * abs(float(seen[-1])))
            centre = np.full(horizon, seen[-1])
            offsets = np.broadcast_to(_normal_quantiles(levels) * spread, (horizon, len(levels)))
        else:
            rule = rules[int(np.argmin(costs))]
            centre = apply_rule(rule, series, horizon)
            centre = np.where(np.isnan(centre), seen[-1], centre)
            offsets = _offsets(rule, series, horizon, levels)
        lower = -np.inf if kpi.lower is None else kpi.lower
        upper = np.inf if kpi.upper is None else kpi.upper
        return np.clip(centre[:, None] + offsets, lower, upper)


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
    """Point forecasts (H,) of a series (T,); NaN where no repeat was seen."""
    steps = len(series)
    position = np.arange(steps, steps + horizon)
    back = (position - steps) // rule.period + 1
    index = position[:, None] - rule.period * (back[:, None] + np.arange(rule.repeats))
    return _mean_seen(np.where(index >= 0, series[np.maximum(index, 0)], np.nan))


def past_errors(rule: Rule, series: NDArray[np.float64], lead: int) -> NDArray[np.float64]:
    """Errors of the rule within the series when it looks `lead` steps ahead, NaN left out.

    A seasonal rule looks back by whole periods whatever the lead (up to one period).
    """
    gap = rule.period * -(-lead // rule.period)
    offsets = [gap + rule.period * repeat for repeat in range(rule.repeats)]
    steps = len(series)
    if offsets[0] >= steps:
        return np.empty(0)
    columns = [
        np.concatenate([np.full(min(o, steps), np.nan), series[: max(steps - o, 0)]])
        for o in offsets
    ]
    errors = series - _mean_seen(np.stack(columns, axis=1))
    seen: NDArray[np.float64] = errors[~np.isnan(errors)]
    return seen


def _offsets(
    rule: Rule, series: NDArray[np.float64], horizon: int, levels: Sequence[float]
) -> NDArray[np.float64]:
    """Quantiles of past errors (H, L), measured at a few leads and interpolated between them."""
    first, last = 1, horizon
    if rule.period > 1:
        first, last = rule.period, rule.period * -(-horizon // rule.period)
    doublings = (first * 2**k for k in range(14) if first * 2**k < last)
    leads = sorted({*doublings, _middle_lead(horizon), last})
    rows, kept = [], []
    for lead in leads:
        errors = past_errors(rule, series, lead)
        if len(errors) >= FEWEST_ERRORS:
            rows.append(np.quantile(errors, levels))
            kept.append(lead)
    table = np.array(rows)  # (leads, L)
    steps = np.arange(1, horizon + 1)
    columns = [np.interp(steps, kept, table[:, column]) for column in range(len(levels))]
    return np.sort(np.stack(columns, axis=1), axis=1)


def _mean_cost(rule: Rule, series: NDArray[np.float64], horizon: int) -> float:
    """Mean absolute error of the rule in the middle of the horizon, infinite if none is known.

    One step ahead the last value nearly always wins, so that is only asked where the series is too
    short for anything else.
    """
    for lead in (_middle_lead(horizon), 1):
        errors = past_errors(rule, series, lead)
        if len(errors) >= FEWEST_ERRORS:
            return float(np.abs(errors).mean())
    return np.inf


def _middle_lead(horizon: int) -> int:
    return (horizon + 1) // 2


def _mean_seen(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over the last axis of what is not NaN; NaN where nothing is."""
    seen = ~np.isnan(samples)
    count = seen.sum(-1)
    total = np.where(seen, samples, 0).sum(-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _normal_quantiles(levels: Sequence[float]) -> NDArray[np.float64]:
    return np.array([NormalDist().inv_cdf(level) for level in levels])
