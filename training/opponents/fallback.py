"""Opponents that may fail on a window, and the last value that then answers in their place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kpi.catalogue import Catalogue
from kpi.window import KpiWindow
from model.baseline import MAX_HORIZON_STEPS, SeasonalBaseline
from model.errors import HorizonError
from model.predictor import ContextSpan, Forecast, ModelIdentity, Rung
from model.quantiles import as_float32, check_levels
from model.seasonal_rules import LAST_VALUE

WIDEST_LEVELS = (0.01, 0.99)


class Place(NamedTuple):
    """One KPI of one window."""

    window: KpiWindow
    row: int

    @property
    def series(self) -> NDArray[np.float32]:
        """Its samples (T,)."""
        series: NDArray[np.float32] = self.window.values[self.row]
        return series


class FallbackOpponent(ABC):
    """A Predictor that forecasts series by series and may give none for some of them."""

    name: str
    note = ""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._last_value = SeasonalBaseline(catalogue, (LAST_VALUE,), level_range=WIDEST_LEVELS)
        self._fallbacks = 0

    @property
    def identity(self) -> ModelIdentity:
        """Who answers; the digest is empty because no file holds it."""
        return ModelIdentity(self.name, "1", "")

    @property
    def max_horizon(self) -> int:
        """Longest horizon in steps."""
        return MAX_HORIZON_STEPS

    @property
    def level_range(self) -> tuple[float, float]:
        """Lowest and highest level that is answered."""
        return WIDEST_LEVELS

    @property
    def fallbacks(self) -> int:
        """Series of a window that the last value answered for, since this was made."""
        return self._fallbacks

    @property
    @abstractmethod
    def context_steps(self) -> int:
        """Most samples that a forecast is made from."""

    @abstractmethod
    def _quantiles(
        self, places: Sequence[Place], horizon: int, levels: Sequence[float]
    ) -> list[NDArray[np.float64] | None]:
        """Quantiles (H, L) of each series, None where the opponent cannot tell."""

    def predict(
        self, windows: Sequence[KpiWindow], horizon: int, levels: Sequence[float]
    ) -> list[Forecast]:
        """Forecast each window; see `Predictor.predict`."""
        if not 1 <= horizon <= self.max_horizon:
            raise HorizonError(
                f"expected a horizon of 1 to {self.max_horizon} steps, got {horizon}"
            )
        check_levels(levels, *self.level_range)
        places = [Place(window, row) for window in windows for row in range(len(window.kpis))]
        answers = iter(self._quantiles(places, horizon, levels))
        return [
            self._forecast(window, [next(answers) for _ in window.kpis], horizon, levels)
            for window in windows
        ]

    def _forecast(
        self,
        window: KpiWindow,
        rows: Sequence[NDArray[np.float64] | None],
        horizon: int,
        levels: Sequence[float],
    ) -> Forecast:
        values = np.empty((len(window.kpis), horizon, len(levels)), dtype=np.float32)
        failed = []
        for row, quantiles in enumerate(rows):
            if quantiles is None or not np.isfinite(quantiles).all():
                failed.append(row)
                continue
            kpi = self._catalogue.resolve(window.kpis[row])
            lower = -np.inf if kpi.lower is None else kpi.lower
            upper = np.inf if kpi.upper is None else kpi.upper
            values[row] = as_float32(np.clip(np.sort(quantiles, axis=-1), lower, upper))
        if failed:
            (instead,) = self._last_value.predict([window], horizon, levels)
            values[failed] = instead.values[failed]
            self._fallbacks += len(failed)
        return Forecast(
            cell=window.cell,
            kpis=window.kpis,
            start_ms=window.end_ms,
            step_ms=window.step_ms,
            levels=tuple(levels),
            values=values,
            model=self.identity,
            rung=Rung.BASELINE if len(failed) == len(rows) else Rung.FULL,
            context=ContextSpan.of(window, self.context_steps),
        )
