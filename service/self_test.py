"""Whether forecasts can be answers: asked of a model before it serves, and of all that it says.

A checkpoint may be whole, of finite weights and of the right shape, and yet overflow on its way to
a quantile. What is no number is written as null, which means that nothing can be said; a control
loop must not take the one for the other.

Axis legend: K KPIs, T samples, H steps of the horizon, Q quantile levels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kpi.window import KpiWindow
from model.errors import ModelError
from service.engine import Ladder, Step
from service.engine.usable import is_usable


class UnusableModelError(ModelError):
    """A model whose forecasts of ordinary windows cannot be answers."""


def check_forecasts(ladder: Ladder, windows: Sequence[KpiWindow]) -> None:
    """Forecast windows at every rung, as far as it reaches, and refuse a model that cannot.

    Args:
        ladder: The rungs of the model.
        windows: Ordinary ones, such as those of `service.loading.warm_up_windows`.

    Raises:
        UnusableModelError: A rung fails, or gives quantiles of another shape, that are not finite
            where samples are known, or that fall where their levels rise.
    """
    for step in ladder.steps:
        fault = _fault_of(step, windows)
        if fault is not None:
            identity = ladder.identity
            raise UnusableModelError(
                f"{identity.name} {identity.version} ({identity.digest or 'no digest'}) cannot "
                f"serve: on ordinary windows its rung {step.rung.value} {fault}; serve another "
                "checkpoint, or train this one again"
            )


def _fault_of(step: Step, windows: Sequence[KpiWindow]) -> str | None:
    """What is wrong with a rung, in words that follow its name; None where nothing is."""
    predictor = step.predictor
    lowest, highest = predictor.level_range
    levels = sorted({lowest, (lowest + highest) / 2, highest})
    horizon = predictor.max_horizon
    try:
        forecasts = predictor.predict(windows, horizon, levels)
    except Exception as error:
        # Whatever it is: what fails on these windows fails on those of clients.
        return f"fails ({type(error).__name__}: {error})"
    if len(forecasts) != len(windows):
        return f"gives {len(forecasts)} forecasts where {len(windows)} were expected"
    for forecast, window in zip(forecasts, windows, strict=True):
        expected = (len(window.kpis), horizon, len(levels))
        if forecast.values.shape != expected:
            return f"gives quantiles of shape {forecast.values.shape}, expected {expected}"
        if not is_usable(forecast, window):
            count = int((~np.isfinite(forecast.values)).sum())
            return f"gives {count} of {forecast.values.size} quantiles that are no finite numbers"
        if (np.diff(forecast.values, axis=-1) < 0).any():
            return "gives quantiles that fall where their levels rise"
    return None
