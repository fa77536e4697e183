"""A checkpoint's self-test: how far another way to compute it moves its quantiles.

The windows are made up, of the kinds that are served: by the hour, the quarter of an hour, the
minute and the second, calm and noisy, one KPI and several, with holes, with hardly any history,
with bursts, with nothing but zeros. What is compared are the quantiles as they are served, at all
trained levels.

Axis legend: K KPIs, H steps of the horizon, L levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from kpi.window import KpiWindow
from model.compiled.target import Precision
from model.config import ForecasterConfig
from model.predictor import Predictor

SEEDS = range(4)
NOISES = (0.5, 6.0, 20.0)
LEAST, MOST = 0.1, 0.9
NARROWEST_RATIO = 1e-3
"""Of a KPI's own spread: an interval that is narrower counts as so wide."""

_HOUR_MS, _QUARTER_MS, _MINUTE_MS, _SECOND_MS = 3_600_000, 900_000, 60_000, 1_000
_DAY_MS = 24 * _HOUR_MS
_START_MS = 19_000 * _DAY_MS


@dataclass(frozen=True)
class Movement:
    """Distances between quantiles, as ratios of the width of their 80 % interval.

    Attributes:
        usual_ratio: Ninety-nine in a hundred move by no more.
        most_ratio: None moves by more.
    """

    usual_ratio: float
    most_ratio: float

    def within(self, limits: Movement) -> bool:
        """Whether it is no more than `limits` allow."""
        return self.usual_ratio <= limits.usual_ratio and self.most_ratio <= limits.most_ratio

    def __str__(self) -> str:
        return f"{self.usual_ratio:.2%} for 99 in 100 quantiles and {self.most_ratio:.2%} for all"


TOLERANCES = {
    Precision.FLOAT32: Movement(usual_ratio=1e-3, most_ratio=1e-2),
    Precision.BFLOAT16: Movement(usual_ratio=0.03, most_ratio=0.2),
}
"""How far quantiles may move."""


def trial_windows(config: ForecasterConfig) -> list[KpiWindow]:
    """Made-up cells, the same at every call."""
    full, several = config.context_steps, ("RRU.PrbTotDl", "DRB.UEThpDl", "RRC.ConnMean")
    windows = []
    for seed, noise in product(SEEDS, NOISES):
        rng = np.random.default_rng([seed, round(10 * noise)])
        windows += [
            _window(rng, noise, ("RRU.PrbTotDl",), _HOUR_MS, full),
            _window(rng, noise, (*several, "RRU.PrbTotUl"), _QUARTER_MS, full),
            _window(rng, noise, several[1:], _MINUTE_MS, full, missing_ratio=0.3),
            _window(rng, noise, ("DRB.PdcpSduVolumeDL",), _SECOND_MS, full, bursts=True),
            _window(rng, noise, ("RRU.PrbTotDl",), _HOUR_MS, config.patch + 1),
            _window(rng, noise, several[:2], _QUARTER_MS, full // 3, zeros=True),
        ]
    return windows


def movement(
    reference: Predictor, other: Predictor, windows: Sequence[KpiWindow], levels: Sequence[float]
) -> Movement:
    """How far quantiles move between two predictors.

    Args:
        reference: Answers as it should be.
        other: Answers otherwise.
        windows: What is asked, for horizons of one step and of the longest.
        levels: Quantile levels. Widths are between those nearest to 10 % and 90 % from within.

    Returns:
        Infinite where an answer is not a number.
    """
    inner = [index for index, level in enumerate(levels) if LEAST <= level <= MOST]
    lower, upper = (inner[0], inner[-1]) if len(inner) > 1 else (0, -1)
    ratios = []
    for horizon in (1, reference.max_horizon):
        wanted = reference.predict(windows, horizon, levels)
        found = other.predict(windows, horizon, levels)
        for window, one, another in zip(windows, wanted, found, strict=True):
            values = one.values.astype(np.float64)
            width = values[..., upper] - values[..., lower]  # (K, H)
            spread = np.nanstd(window.values.astype(np.float64), axis=1, keepdims=True)  # (K, 1)
            width = np.maximum(width, NARROWEST_RATIO * spread)
            ratios.append(_ratios(np.abs(another.values - values), width[..., None]).ravel())
    every = np.concatenate(ratios)
    return Movement(float(np.quantile(every, 0.99, method="higher")), float(every.max()))


def _ratios(distance: NDArray[np.float64], width: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of (K, H, L) to (K, H, 1); 0 to 0 is 0."""
    ratio = np.where(distance == 0, 0.0, distance / np.maximum(width, np.finfo(np.float64).tiny))
    return np.nan_to_num(ratio, nan=np.inf, posinf=np.inf)


def _window(
    rng: np.random.Generator,
    noise: float,
    kpis: tuple[str, ...],
    step_ms: int,
    steps: int,
    *,
    missing_ratio: float = 0.0,
    bursts: bool = False,
    zeros: bool = False,
) -> KpiWindow:
    day = 2 * np.pi * (_START_MS + step_ms * np.arange(steps)) / _DAY_MS
    load = 45 + 30 * np.sin(day - rng.uniform(0, 3, (len(kpis), 1)))  # (K, T)
    load += rng.normal(0, noise, load.shape)
    if bursts:
        load *= rng.random(load.shape) < 0.2
    load = load.clip(0, 100)
    load[rng.random(load.shape) < missing_ratio] = np.nan
    if zeros:
        load[0] = 0
    return KpiWindow("trial", kpis, _START_MS, step_ms, load.astype(np.float32))
