"""Scores of one chunk of origins: made in any process, added up in one order.

Floating-point sums depend on their order, so a chunk is always the same origins and the tallies of
chunks are merged in the order of the chunks, however many processes made them.

Axis legend: K KPIs, T samples, H steps, Q levels.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from kpi.window import KpiWindow
from model.accuracy import Accuracy, measure, seasonal_naive_error
from model.lags import DAY_MS, period_steps
from model.predictor import Forecast, Predictor
from training.backtest.config import BacktestConfig, lead_buckets, origins_of
from training.backtest.hours import HourlyErrors, has_hours, hourly_errors, local_hours
from training.backtest.result import Example
from training.dataset import known_at


@runtime_checkable
class CountsFallbacks(Protocol):
    """A forecaster that lets the last value answer where it cannot."""

    @property
    def fallbacks(self) -> int:
        """How often that happened since the forecaster was made, in series of a window."""


@dataclass(frozen=True, slots=True)
class Cut:
    """One origin: the past before it is seen, the horizon after it is judged.

    Attributes:
        number: Number of the window among all.
        window: The whole history.
        origin: Position of the first sample to forecast.
        shown: Whether its forecast is kept as an example.
    """

    number: int
    window: KpiWindow
    origin: int
    shown: bool = False


Key = TypeVar("Key")
Sum = TypeVar("Sum", Accuracy, HourlyErrors)

ScoreKey = tuple[int, str, str, int]
"""Number of the window, model, KPI, number of the lead bucket."""


@dataclass
class Tally:
    """Sums of a chunk.

    Attributes:
        scores: Accuracy by window, model, KPI and lead bucket.
        hours: Errors by model and KPI over the local day.
        fallbacks: Series that the last value answered for, by model.
        seconds: Time that forecasts took, by model.
        series: Series of a window that each model was asked for.
        origins: Number of origins.
        examples: Forecasts of the first model to show.
    """

    scores: dict[ScoreKey, Accuracy] = field(default_factory=dict)
    hours: dict[tuple[str, str], HourlyErrors] = field(default_factory=dict)
    fallbacks: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    series: int = 0
    origins: int = 0
    examples: list[Example] = field(default_factory=list)


def tally(predictors: Sequence[Predictor], cuts: Sequence[Cut], config: BacktestConfig) -> Tally:
    """Forecast every cut with every predictor and score it."""
    pasts = [known_at(cut.window, cut.origin) for cut in cuts]
    futures = [cut.window.values[:, cut.origin : cut.origin + config.horizon] for cut in cuts]
    truths = _truths(cuts, futures, config)
    result = Tally(series=sum(len(past.kpis) for past in pasts), origins=len(cuts))
    for place, predictor in enumerate(predictors):
        model = predictor.identity.name
        before = predictor.fallbacks if isinstance(predictor, CountsFallbacks) else 0
        began = time.perf_counter()
        forecasts = predictor.predict(pasts, config.horizon, config.levels)
        result.seconds[model] = time.perf_counter() - began
        if isinstance(predictor, CountsFallbacks):
            result.fallbacks[model] = predictor.fallbacks - before
        _score(result, model, forecasts, truths, config)
        if place == 0:
            result.examples += [
                Example(past, forecast, future)
                for cut, past, forecast, future in zip(cuts, pasts, forecasts, futures, strict=True)
                if cut.shown
            ]
    return result


@dataclass(frozen=True)
class _Truth:
    """What came for one KPI of one window, over its N origins in the chunk."""

    number: int
    kpi: str
    row: int
    places: list[int]
    target: NDArray[np.float32]  # (N, H)
    naive_error: float
    hours: NDArray[np.int64] | None  # (N, H)


def _truths(
    cuts: Sequence[Cut], futures: Sequence[NDArray[np.float32]], config: BacktestConfig
) -> list[_Truth]:
    places: dict[int, list[int]] = defaultdict(list)
    for place, cut in enumerate(cuts):
        places[cut.number].append(place)
    truths = []
    for number, members in places.items():
        window = cuts[members[0]].window
        starts = [window.start_ms + cuts[i].origin * window.step_ms for i in members]
        hours = (
            local_hours(starts, config.horizon, window.step_ms, window.time_zone)
            if has_hours(window.step_ms)
            else None
        )
        naive = _naive_errors(window, config)
        for row, kpi in enumerate(window.kpis):
            target = np.stack([futures[i][row] for i in members])
            truths.append(_Truth(number, kpi, row, members, target, naive[row], hours))
    return truths


def _score(
    result: Tally,
    model: str,
    forecasts: Sequence[Forecast],
    truths: Sequence[_Truth],
    config: BacktestConfig,
) -> None:
    buckets = lead_buckets(config.horizon)
    middle = int(np.argmin(np.abs(np.asarray(config.levels) - 0.5)))
    for truth in truths:
        quantiles = np.stack([forecasts[i].values[truth.row] for i in truth.places])  # (N, H, Q)
        for bucket, (first, last) in enumerate(buckets):
            leads = slice(first - 1, last)
            result.scores[truth.number, model, truth.kpi, bucket] = measure(
                quantiles[:, leads], truth.target[:, leads], config.levels, truth.naive_error
            )
        if truth.hours is not None:
            part = hourly_errors(quantiles[..., middle], truth.target, truth.hours)
            add(result.hours, {(model, truth.kpi): part})


def add(sums: dict[Key, Sum], parts: Mapping[Key, Sum]) -> None:
    """Add parts to the sums of the same keys."""
    for key, part in parts.items():
        sums[key] = sums[key] + part if key in sums else part


def _naive_errors(window: KpiWindow, config: BacktestConfig) -> list[float]:
    """The MASE scale of each KPI: mean naive error before the first origin.

    The season is a day where two days lie there, else one step.
    """
    seen = window.values[:, : origins_of(window, config)[0]]
    season = period_steps(DAY_MS, window.step_ms) or 1
    season = season if 2 * season <= seen.shape[1] else 1
    return [seasonal_naive_error(row, season) for row in seen]
