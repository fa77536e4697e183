"""Horizons beyond what a forecaster answers in one pass.

The rule: each further stretch is forecast from the medians of the stretches before it, as if they
had been observed, and what was uncertain at the end of the last stretch stays uncertain: its
distances from the median are added to the new ones as independent errors are, by squares. A KPI
that was never seen stays unseen, so its answer is the same in every stretch.

Axis legend: K KPIs, T samples, H steps, L levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kpi.catalogue import Catalogue
from kpi.window import KpiWindow
from model.errors import HorizonError
from model.predictor import Forecast, ModelIdentity, Predictor
from model.quantiles import as_float32, check_levels

MOST_STRETCHES = 4
MEDIAN = 0.5


class Rollout:
    """A predictor that answers up to four times the horizon of the one inside it."""

    def __init__(self, inner: Predictor, catalogue: Catalogue) -> None:
        self._inner = inner
        self._catalogue = catalogue

    @property
    def identity(self) -> ModelIdentity:
        """Who answers."""
        return self._inner.identity

    @property
    def max_horizon(self) -> int:
        """Longest horizon in steps."""
        return MOST_STRETCHES * self._inner.max_horizon

    @property
    def level_range(self) -> tuple[float, float]:
        """Lowest and highest quantile level."""
        return self._inner.level_range

    def predict(
        self, windows: Sequence[KpiWindow], horizon: int, levels: Sequence[float]
    ) -> list[Forecast]:
        """Forecast each window; see `Predictor.predict`. One pass where one is enough."""
        most = self._inner.max_horizon
        if horizon <= most:
            return self._inner.predict(windows, horizon, levels)
        if horizon > self.max_horizon:
            raise HorizonError(
                f"expected a horizon of 1 to {self.max_horizon} steps, got {horizon}"
            )
        check_levels(levels, *self.level_range)
        inner_levels = sorted({*levels, MEDIAN})
        asked = [inner_levels.index(level) for level in levels]
        middle = inner_levels.index(MEDIAN)
        stretches: list[list[NDArray[np.float64]]] = [[] for _ in windows]
        known = list(windows)
        silent = [~_seen(window) for window in windows]  # (K,) each
        first: list[Forecast] = []
        for begin in range(0, horizon, most):
            forecasts = self._inner.predict(known, min(most, horizon - begin), inner_levels)
            first = first or forecasts
            for index, forecast in enumerate(forecasts):
                values = forecast.values.astype(np.float64)
                if stretches[index]:
                    widened = _widened(values, stretches[index][-1][:, -1], middle)
                    values = np.where(silent[index][:, None, None], values, widened)
                stretches[index].append(self._within_limits(values, forecast.kpis))
                medians = forecast.values[..., middle].copy()
                medians[silent[index]] = np.nan
                known[index] = _followed(known[index], medians)
        return [
            replace(
                forecast,
                levels=tuple(levels),
                values=as_float32(np.concatenate(parts, axis=1)[..., asked]),
            )
            for forecast, parts in zip(first, stretches, strict=True)
        ]

    def _within_limits(
        self, values: NDArray[np.float64], kpis: Sequence[str]
    ) -> NDArray[np.float64]:
        """Quantiles (K, H, L) cut to the limits of their KPIs."""
        entries = [self._catalogue.resolve(name) for name in kpis]
        lower = np.array([-np.inf if k.lower is None else k.lower for k in entries])
        upper = np.array([np.inf if k.upper is None else k.upper for k in entries])
        return np.clip(values, lower[:, None, None], upper[:, None, None])


def _widened(
    values: NDArray[np.float64], before: NDArray[np.float64], middle: int
) -> NDArray[np.float64]:
    """Quantiles (K, H, L) with the distances (K, L) at the end of the stretch before added."""
    centre = values[..., middle, None]
    own = values - centre
    carried = (before - before[:, middle, None])[:, None]
    widened: NDArray[np.float64] = centre + np.sign(own + carried) * np.hypot(own, carried)
    return widened


def _seen(window: KpiWindow) -> NDArray[np.bool_]:
    """Which KPIs (K,) have a value anywhere in the window."""
    return np.asarray((~np.isnan(window.values)).any(axis=1))


def _followed(window: KpiWindow, medians: NDArray[np.float32]) -> KpiWindow:
    """The window with (K, H) medians behind its samples."""
    return replace(window, values=np.concatenate([window.values, medians], axis=1))
