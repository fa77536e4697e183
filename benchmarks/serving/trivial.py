"""A predictor that costs next to nothing: what is timed with it is all but the model.

Axis legend: B windows, K KPIs, T samples, H steps, Q levels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kpi.window import KpiWindow
from model.predictor import ContextSpan, Forecast, ModelIdentity, Rung

_IDENTITY = ModelIdentity("repeat-last", "1", "sha256:0")
_MAX_HORIZON = 192
_LEVEL_RANGE = (0.01, 0.99)


class RepeatLast:
    """Forecasts the last sample of each KPI, 0 where it is missing, plus the level."""

    @property
    def identity(self) -> ModelIdentity:
        """Who answers."""
        return _IDENTITY

    @property
    def max_horizon(self) -> int:
        """Longest horizon in steps."""
        return _MAX_HORIZON

    @property
    def level_range(self) -> tuple[float, float]:
        """Lowest and highest quantile level that can be asked for."""
        return _LEVEL_RANGE

    def predict(
        self, windows: Sequence[KpiWindow], horizon: int, levels: Sequence[float]
    ) -> list[Forecast]:
        """One forecast a window, in the same order."""
        spread = np.tile(np.asarray(levels, dtype=np.float32), (horizon, 1))  # (H, Q)
        stated = tuple(levels)
        return [
            Forecast(
                window.cell,
                window.kpis,
                window.end_ms,
                window.step_ms,
                stated,
                spread + _last(window),  # (K, H, Q)
                _IDENTITY,
                Rung.FULL,
                ContextSpan(window.start_ms, window.end_ms, 0.0, window.end_ms),
            )
            for window in windows
        ]


def _last(window: KpiWindow) -> NDArray[np.float32]:
    """The last samples (K, 1, 1), 0 where one is missing."""
    last: NDArray[np.float32] = window.values[:, -1:, None]
    return last if not np.isnan(last).any() else np.nan_to_num(last)
