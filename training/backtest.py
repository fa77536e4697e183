"""Backtest: forecast from many past origins and compare with what came.

Every forecaster sees the same windows: the samples before an origin and nothing after it. Origins
roll through the last part of each cell's history, so a cell is tested on days after its context.

Axis legend: K KPIs, T samples, H steps, Q levels.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kpi.window import KpiWindow
from model.accuracy import Accuracy, measure, seasonal_naive_error
from model.lags import DAY_MS, period_steps
from model.predictor import Forecast, Predictor
from training.errors import DataError

CHUNK_WINDOWS = 64
MAX_LEAD_BUCKETS = 8
EXAMPLES = 6


@dataclass(frozen=True)
class BacktestConfig:
    """What to test.

    Attributes:
        horizon: Steps to forecast.
        levels: Quantile levels; coverage is that of the outermost ones.
        test_ratio: Share of each cell's history, at its end, that origins roll through.
        stride: Steps between origins, the horizon by default.
        max_origins: Most origins a cell, spread evenly.
        min_context_steps: Least history before an origin.
    """

    horizon: int = 24
    levels: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    test_ratio: float = 0.3
    stride: int | None = None
    max_origins: int = 50
    min_context_steps: int = 32

    def __post_init__(self) -> None:
        if self.horizon < 1:
            raise DataError(f"expected a horizon of at least 1 step, got {self.horizon}")
        if not 0 < self.test_ratio < 1:
            raise DataError(f"expected a test ratio between 0 and 1, got {self.test_ratio}")
        if self.stride is not None and self.stride < 1:
            raise DataError(f"expected a stride of at least 1 step, got {self.stride}")
        if self.max_origins < 1:
            raise DataError(f"expected at least one origin a cell, got {self.max_origins}")

    @property
    def enough_steps(self) -> int:
        """A history of this many samples has an origin."""
        in_test_part = math.ceil((self.horizon + 0.5) / self.test_ratio)
        return max(self.min_context_steps + self.horizon, in_test_part)


@dataclass(frozen=True)
class Score:
    """One line of the result.

    Attributes:
        model: Name of the forecaster.
        kpi: Name of the KPI.
        first_lead: First step of the horizon that this line counts.
        last_lead: Last one.
        accuracy: The sums.
    """

    model: str
    kpi: str
    first_lead: int
    last_lead: int
    accuracy: Accuracy

    @property
    def leads(self) -> str:
        """The steps ahead that this line counts, in words."""
        one = self.first_lead == self.last_lead
        return str(self.first_lead) if one else f"{self.first_lead} to {self.last_lead}"


@dataclass(frozen=True)
class Example:
    """One window with its forecast and what came, for a plot."""

    window: KpiWindow
    forecast: Forecast
    actual: NDArray[np.float32]


@dataclass(frozen=True)
class BacktestResult:
    """How the forecasters did.

    Attributes:
        config: What was tested.
        scores: By model, KPI and leads.
        examples: A few forecasts of the first model.
        cells: Number of cells.
        origins: Number of origins over all cells.
        step_seconds: The sampling steps of the cells.
    """

    config: BacktestConfig
    scores: Sequence[Score]
    examples: Sequence[Example]
    cells: int
    origins: int
    step_seconds: tuple[float, ...]

    def overall(self) -> list[Score]:
        """Scores over the whole horizon, one a model and KPI, best WQL first within a KPI."""
        sums: dict[tuple[str, str], Accuracy] = {}
        for score in self.scores:
            key = score.kpi, score.model
            sums[key] = sums[key] + score.accuracy if key in sums else score.accuracy
        lines = [
            Score(model, kpi, 1, self.config.horizon, total) for (kpi, model), total in sums.items()
        ]
        return sorted(lines, key=_best_first)


def _best_first(line: Score) -> tuple[str, bool, float]:
    """Order of the lines of a KPI; a WQL that is no number, since all targets are zero, is last."""
    wql = line.accuracy.wql
    return line.kpi, math.isnan(wql), 0.0 if math.isnan(wql) else wql


def origins_of(window: KpiWindow, config: BacktestConfig) -> list[int]:
    """Positions in the window from which to forecast, in ascending order."""
    first = max(config.min_context_steps, round(window.steps * (1 - config.test_ratio)))
    stride = config.stride or config.horizon
    origins = list(range(first, window.steps - config.horizon + 1, stride))
    if len(origins) > config.max_origins:
        picks = np.linspace(0, len(origins) - 1, config.max_origins).round().astype(int)
        origins = [origins[pick] for pick in picks]
    return origins


def lead_buckets(horizon: int) -> list[tuple[int, int]]:
    """The horizon cut into at most eight runs of leads, shorter near the origin."""
    edges = np.unique(np.geomspace(1, horizon + 1, MAX_LEAD_BUCKETS + 1).round().astype(int))
    return [(int(a), int(b) - 1) for a, b in pairwise(edges)]


def backtest(
    predictors: Sequence[Predictor],
    windows: Sequence[KpiWindow],
    config: BacktestConfig,
    on_progress: Callable[[int, int], None] | None = None,
) -> BacktestResult:
    """Score every predictor on every origin.

    Args:
        predictors: The forecasters; the first one's examples are kept.
        windows: Histories, one a cell.
        config: What to test.
        on_progress: Called with the origins done and in all.

    Raises:
        DataError: No window is long enough for one origin.
    """
    cuts = [(window, origin) for window in windows for origin in origins_of(window, config)]
    if not cuts:
        longest = max((window.steps for window in windows), default=0)
        raise DataError(
            f"expected a cell with at least {config.enough_steps} samples for one origin with a "
            f"horizon of {config.horizon} in the last {config.test_ratio:.0%}; the longest has "
            f"{longest}"
        )
    buckets = lead_buckets(config.horizon)
    sums: dict[tuple[str, str, int], Accuracy] = {}
    examples: list[Example] = []
    wanted = set(np.linspace(0, len(cuts) - 1, min(EXAMPLES, len(cuts))).round().astype(int))
    done = 0
    naive = _NaiveErrors(config)
    for chunk in _chunks(cuts, CHUNK_WINDOWS):
        pasts = [replace(w, values=w.values[:, :origin]) for w, origin in chunk]
        futures = [w.values[:, origin : origin + config.horizon] for w, origin in chunk]
        for place, predictor in enumerate(predictors):
            forecasts = predictor.predict(pasts, config.horizon, config.levels)
            _add(sums, predictor.identity.name, forecasts, futures, chunk, buckets, naive)
            if place == 0:
                examples += [
                    Example(pasts[i], forecasts[i], futures[i])
                    for i in range(len(chunk))
                    if done + i in wanted
                ]
        done += len(chunk)
        if on_progress:
            on_progress(done, len(cuts))
    scores = [
        Score(model, kpi, *buckets[bucket], total) for (model, kpi, bucket), total in sums.items()
    ]
    cells = len({window.cell for window, _ in cuts})
    steps = tuple(sorted({window.step_seconds for window, _ in cuts}))
    return BacktestResult(config, scores, examples, cells, len(cuts), steps)


class _NaiveErrors:
    """The MASE scale of each window's KPIs: daily naive error before the first origin."""

    def __init__(self, config: BacktestConfig) -> None:
        self._config = config
        self._known: dict[int, list[float]] = {}

    def of(self, window: KpiWindow) -> list[float]:
        """One error a KPI; the season is a day where a day is in the history, else one step."""
        if id(window) not in self._known:
            seen = window.values[:, : origins_of(window, self._config)[0]]
            season = period_steps(DAY_MS, window.step_ms) or 1
            season = season if 2 * season <= seen.shape[1] else 1
            self._known[id(window)] = [seasonal_naive_error(row, season) for row in seen]
        return self._known[id(window)]


def _add(
    sums: dict[tuple[str, str, int], Accuracy],
    model: str,
    forecasts: Sequence[Forecast],
    futures: Sequence[NDArray[np.float32]],
    chunk: Sequence[tuple[KpiWindow, int]],
    buckets: Sequence[tuple[int, int]],
    naive: _NaiveErrors,
) -> None:
    """Add a chunk's scores to the sums by model, KPI and bucket."""
    rows: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for index, forecast in enumerate(forecasts):
        for row, kpi in enumerate(forecast.kpis):
            rows[kpi].append((index, row))
    for kpi, places in rows.items():
        quantiles = np.stack([forecasts[index].values[row] for index, row in places])
        target = np.stack([futures[index][row] for index, row in places])
        scale = np.array([naive.of(chunk[index][0])[row] for index, row in places])
        for number, (first, last) in enumerate(buckets):
            leads = slice(first - 1, last)
            levels = forecasts[places[0][0]].levels
            part = measure(quantiles[:, leads], target[:, leads], levels, scale)
            key = model, kpi, number
            sums[key] = sums[key] + part if key in sums else part


def _chunks(
    cuts: Sequence[tuple[KpiWindow, int]], size: int
) -> Iterator[Sequence[tuple[KpiWindow, int]]]:
    for begin in range(0, len(cuts), size):
        yield cuts[begin : begin + size]
