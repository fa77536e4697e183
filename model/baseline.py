"""The seasonal baseline: a mean of what the season says, with quantiles of its own past errors.

It needs no weights, is never far wrong, and is the bar that the Transformer has to clear. Per KPI
the rule with the least error on the window itself is taken: the mean over the last days, the mean
over the last weeks, or the last value.

Axis legend: K KPIs, T samples, H steps, L levels, R series of one step and length.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from kpi.catalogue import Catalogue, Kpi
from kpi.window import KpiWindow
from model.config import TRAINED_LEVELS
from model.errors import HorizonError, ModelError
from model.predictor import ContextSpan, Forecast, ModelIdentity, Rung
from model.quantiles import as_float32, check_levels, uninformed
from model.seasonal_rules import (
    DEFAULT_RULES,
    LAST_VALUE,
    SEASONS,
    Rule,
    apply_rule,
    error_quantiles,
    last_seen,
    mean_costs,
    seasonal_rules,
)

MAX_HORIZON_STEPS = 10_000
MAX_CONTEXT_STEPS = 6_000
SPARSE_SPREAD_RATIO = 0.5
MOST_TOGETHER = 16_384
"""Samples that are worked on at a time: they stay in a core's cache."""


class SeasonalBaseline:
    """The best of a few rules on the window itself, with empirical quantiles."""

    def __init__(
        self,
        catalogue: Catalogue,
        rules: Sequence[str] = DEFAULT_RULES,
        *,
        level_range: tuple[float, float] = (TRAINED_LEVELS[0], TRAINED_LEVELS[-1]),
        identity: ModelIdentity | None = None,
    ) -> None:
        """Choose among `rules`; a window too short for all of them gets its last value.

        Args:
            catalogue: KPI catalogue.
            rules: Names of the rules.
            level_range: Lowest and highest level to answer; beyond the default most windows hold
                too few errors to tell.
            identity: Of the model that it stands in for; its own by default.

        Raises:
            ModelError: A rule that is not known.
        """
        if unknown := [name for name in rules if name not in (LAST_VALUE, *SEASONS)]:
            raise ModelError(f"expected rules from {[LAST_VALUE, *SEASONS]}, got {unknown}")
        self._catalogue = catalogue
        self._rules = tuple(rules)
        self._level_range = level_range
        self._identity = identity or _identity(self._rules)

    @property
    def identity(self) -> ModelIdentity:
        """Who answers."""
        return self._identity

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
        values: dict[int, NDArray[np.float32]] = {}
        for members in self._groups(windows):
            rows = np.concatenate(
                [windows[index].values[:, -MAX_CONTEXT_STEPS:] for index in members]
            ).astype(np.float64)
            kpis = [self._catalogue.resolve(name) for i in members for name in windows[i].kpis]
            quantiles = self._quantiles(rows, kpis, windows[members[0]].step_ms, horizon, levels)
            begins = np.cumsum([0, *(len(windows[index].kpis) for index in members)])
            for index, begin, end in zip(members, begins[:-1], begins[1:], strict=True):
                values[index] = as_float32(quantiles[begin:end])
        return [
            self._forecast(window, levels, values[index]) for index, window in enumerate(windows)
        ]

    def _groups(self, windows: Sequence[KpiWindow]) -> list[list[int]]:
        """Positions of windows that are worked on together: of one step and length."""
        alike: dict[tuple[int, int], list[int]] = defaultdict(list)
        for index, window in enumerate(windows):
            alike[window.step_ms, min(window.steps, MAX_CONTEXT_STEPS)].append(index)
        groups = []
        for (_, steps), members in alike.items():
            most_rows = MOST_TOGETHER // max(1, steps)
            group: list[int] = []
            rows = 0
            for index in members:
                if group and rows + len(windows[index].kpis) > most_rows:
                    groups.append(group)
                    group, rows = [], 0
                group.append(index)
                rows += len(windows[index].kpis)
            groups.append(group)
        return groups

    def _forecast(
        self, window: KpiWindow, levels: Sequence[float], values: NDArray[np.float32]
    ) -> Forecast:
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
        kpis: Sequence[Kpi],
        step_ms: int,
        horizon: int,
        levels: Sequence[float],
    ) -> NDArray[np.float64]:
        """Quantiles (R, H, L) of series (R, T) within the limits of their KPIs."""
        found = np.empty((len(series), horizon, len(levels)))
        seen = ~np.isnan(series).all(axis=1)
        for row in np.flatnonzero(~seen).tolist():
            found[row] = uninformed(kpis[row], levels)
        rules = seasonal_rules(step_ms, series.shape[1], self._rules)
        costs = np.stack([mean_costs(rule, series, horizon) for rule in rules])  # (rules, R)
        best, judged = costs.argmin(axis=0), np.isfinite(costs.min(axis=0))
        for number, rule in enumerate(rules):
            rows = np.flatnonzero(seen & judged & (best == number))
            if len(rows):
                found[rows] = _by_rule(rule, series[rows], horizon, levels)
        if len(rows := np.flatnonzero(seen & ~judged)):
            found[rows] = _by_spread(series[rows], levels)[:, None]
        lower = np.array([-np.inf if kpi.lower is None else kpi.lower for kpi in kpis])
        upper = np.array([np.inf if kpi.upper is None else kpi.upper for kpi in kpis])
        return np.clip(found, lower[:, None, None], upper[:, None, None])


def _identity(rules: tuple[str, ...]) -> ModelIdentity:
    """The digest is empty because there are no weights."""
    name = "seasonal baseline" if rules == DEFAULT_RULES else ", ".join(rules)
    return ModelIdentity(name, "1", "")


def _by_rule(
    rule: Rule, series: NDArray[np.float64], horizon: int, levels: Sequence[float]
) -> NDArray[np.float64]:
    """Quantiles (R, H, L) by a rule; the last value stands in where it has nothing to go by."""
    centre = apply_rule(rule, series, horizon)
    centre = np.where(np.isnan(centre), last_seen(series)[:, None], centre)
    return centre[:, :, None] + error_quantiles(rule, series, horizon, levels)


def _by_spread(series: NDArray[np.float64], levels: Sequence[float]) -> NDArray[np.float64]:
    """Quantiles (R, L) where there is too little to judge a rule by: the last value, and wide."""
    last = last_seen(series)
    spread = np.maximum(np.nanstd(series, axis=1), SPARSE_SPREAD_RATIO * np.abs(last))
    normal = np.array([NormalDist().inv_cdf(level) for level in levels])
    quantiles: NDArray[np.float64] = last[:, None] + normal * spread[:, None]
    return quantiles
