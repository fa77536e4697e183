"""Whether what a model says is an answer.

What is no number is written as null, which means that nothing can be said; a control loop must not
take a model's failure for that.

Axis legend: K KPIs, T samples, H steps of the horizon, Q quantile levels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kpi.window import KpiWindow
from model.predictor import Forecast


def are_usable(forecasts: Sequence[Forecast], windows: Sequence[KpiWindow]) -> bool:
    """Whether each of the forecasts is an answer; the windows are what they were made from."""
    # Nearly all of all calls: one look at all numbers instead of one at those of each.
    numbers = np.concatenate([forecast.values.ravel() for forecast in forecasts])
    return bool(np.isfinite(numbers).all()) or all(map(is_usable, forecasts, windows))


def is_usable(forecast: Forecast, window: KpiWindow) -> bool:
    """Whether a forecast is an answer: finite wherever its context holds a sample of the KPI.

    Args:
        forecast: (K, H, Q) of the window.
        window: What it was made from, (K, T).
    """
    is_finite = np.isfinite(forecast.values)
    if is_finite.all():
        return True
    silent = ~is_finite.all(axis=(1, 2))  # (K,)
    return not (silent & _known(forecast, window)).any()


def _known(forecast: Forecast, window: KpiWindow) -> NDArray[np.bool_]:
    """Which KPIs (K,) have a sample in what the forecast was made from."""
    steps = (forecast.context.end_ms - forecast.context.start_ms) // forecast.step_ms
    context = window.values[:, max(0, window.steps - steps) :]
    return np.asarray((~np.isnan(context)).any(axis=1))
