"""The one interface between the service and the models, and what passes through it.

Axis legend: K KPIs, H steps of the horizon, Q quantile levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kpi.window import KpiWindow


class Rung(StrEnum):
    """How much work went into an answer."""

    FULL = "full"
    SHORT = "short"
    BASELINE = "baseline"


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """Name, version and digest (`sha256:…`) of the model that answered."""

    name: str
    version: str
    digest: str


@dataclass(frozen=True, slots=True)
class ContextSpan:
    """What the forecast was made from.

    Attributes:
        start_ms: Begin of the first sample that entered the model.
        end_ms: End of the last one, the origin of the forecast.
        missing_ratio: Share of samples without a value in that span, 0 to 1.
        newest_ms: End of the newest sample with a value, None where there is none.
    """

    start_ms: int
    end_ms: int
    missing_ratio: float
    newest_ms: int | None

    @staticmethod
    def of(window: KpiWindow, most_steps: int) -> ContextSpan:
        """The last `most_steps` samples of a window, or all there are."""
        context = window.values[:, -most_steps:]
        seen = ~np.isnan(context)  # (K, C)
        newest = np.flatnonzero(seen.any(axis=0))
        start_ms = window.end_ms - context.shape[1] * window.step_ms
        return ContextSpan(
            start_ms=start_ms,
            end_ms=window.end_ms,
            missing_ratio=float(1 - seen.mean()) if seen.size else 1.0,
            newest_ms=start_ms + (int(newest[-1]) + 1) * window.step_ms if len(newest) else None,
        )


@dataclass(frozen=True, slots=True)
class Forecast:
    """Quantiles of the coming samples of one cell.

    Attributes:
        cell: Distinguished name of the cell.
        kpis: Catalogue names, K of them.
        start_ms: Begin of the first forecast sample, which is the end of the context.
        step_ms: Length of a sample in milliseconds.
        levels: Quantile levels in ascending order, Q of them.
        values: float32 (K, H, Q), non-decreasing over Q and within the KPI's limits; NaN where
            nothing can be said (a KPI never seen whose limits are unknown).
        model: Who answered.
        rung: How much work went into it.
        context: What it was made from.
    """

    cell: str
    kpis: tuple[str, ...]
    start_ms: int
    step_ms: int
    levels: tuple[float, ...]
    values: NDArray[np.float32]
    model: ModelIdentity
    rung: Rung
    context: ContextSpan


class Predictor(Protocol):
    """Anything that turns windows into forecasts: the Transformer, the seasonal baseline."""

    @property
    def identity(self) -> ModelIdentity:
        """Who answers."""

    @property
    def max_horizon(self) -> int:
        """Longest horizon in steps."""

    @property
    def level_range(self) -> tuple[float, float]:
        """Lowest and highest quantile level that can be asked for."""

    def predict(
        self, windows: Sequence[KpiWindow], horizon: int, levels: Sequence[float]
    ) -> list[Forecast]:
        """One forecast a window, in the same order; windows may differ in step, KPIs and length.

        A forecast does not depend on what else is in `windows`.

        Raises:
            HorizonError: `horizon` is not in 1..max_horizon.
            LevelError: A level is outside `level_range` or the levels do not ascend.
        """
