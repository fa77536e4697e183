"""A checkpoint's self-test: how far another way to compute it moves its quantiles.

The windows are made up, of the kinds that are served: by the hour, the quarter of an hour, the
minute and the second, one KPI and several, with holes, with hardly any history, with bursts, with
nothing but zeros. What is compared are the quantiles as they are served.

Axis legend: K KPIs, H steps of the horizon, L levels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpi.window import KpiWindow
from model.compiled.target import Precision
from model.config import ForecasterConfig
from model.predictor import Predictor

SEED = 4
LEVELS = (0.1, 0.5, 0.9)
MOST_MOVED_RATIO = {Precision.FLOAT32: 1e-3, Precision.BFLOAT16: 0.05}
"""Share of the width between the 10 % and the 90 % quantile by which a quantile may move."""

_HOUR_MS, _QUARTER_MS, _MINUTE_MS, _SECOND_MS = 3_600_000, 900_000, 60_000, 1_000
_DAY_MS = 24 * _HOUR_MS
_START_MS = 19_000 * _DAY_MS


def trial_windows(config: ForecasterConfig) -> list[KpiWindow]:
    """Made-up cells, the same at every call."""
    full = config.context_steps
    return [
        _window(("RRU.PrbTotDl",), _HOUR_MS, full),
        _window(("RRU.PrbTotDl", "DRB.UEThpDl", "RRC.ConnMean", "RRU.PrbTotUl"), _QUARTER_MS, full),
        _window(("RRC.ConnMean", "RRU.PrbTotUl"), _MINUTE_MS, full, missing_ratio=0.3),
        _window(("DRB.PdcpSduVolumeDL",), _SECOND_MS, full, bursts=True),
        _window(("RRU.PrbTotDl",), _HOUR_MS, config.patch + 1),
        _window(("DRB.UEThpDl", "RRU.PrbTotDl"), _QUARTER_MS, full // 3, zeros=True),
    ]


def moved_ratio(reference: Predictor, other: Predictor, windows: list[KpiWindow]) -> float:
    """The farthest that any quantile moves between two predictors.

    Args:
        reference: Answers as it should be.
        other: Answers otherwise.
        windows: What is asked, for horizons of one step and of the longest.

    Returns:
        The distance as a ratio of the width between the 10 % and the 90 % quantile at its step;
        infinite where an answer is not a number.
    """
    worst = 0.0
    for horizon in (1, reference.max_horizon):
        wanted = reference.predict(windows, horizon, LEVELS)
        found = other.predict(windows, horizon, LEVELS)
        for one, another in zip(wanted, found, strict=True):
            worst = max(worst, _moved(one.values, another.values))
    return worst


def _moved(wanted: NDArray[np.float32], found: NDArray[np.float32]) -> float:
    """The greatest ratio of a window's quantiles (K, H, L)."""
    reference = wanted.astype(np.float64)
    distance = np.abs(found - reference)
    width = (reference[..., -1] - reference[..., 0])[..., None]
    # Where the limits of a KPI leave no width, nothing may move.
    ratio = np.where(distance == 0, 0.0, distance / np.maximum(width, np.finfo(np.float32).tiny))
    return float(np.nan_to_num(ratio, nan=np.inf, posinf=np.inf).max())


def _window(
    kpis: tuple[str, ...],
    step_ms: int,
    steps: int,
    *,
    missing_ratio: float = 0.0,
    bursts: bool = False,
    zeros: bool = False,
) -> KpiWindow:
    random = np.random.default_rng([SEED, step_ms, steps])
    day = 2 * np.pi * (_START_MS + step_ms * np.arange(steps)) / _DAY_MS
    load = 45 + 30 * np.sin(day - random.uniform(0, 3, (len(kpis), 1)))  # (K, T)
    load += random.normal(0, 6, load.shape)
    if bursts:
        load *= random.random(load.shape) < 0.2
    load = load.clip(0, 100)
    load[random.random(load.shape) < missing_ratio] = np.nan
    if zeros:
        load[0] = 0
    return KpiWindow("trial", kpis, _START_MS, step_ms, load.astype(np.float32))
