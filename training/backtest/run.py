"""The run: learn, forecast from every origin, add up; sums only, never all forecasts.

A cell's own sums are let go once its last origin is done, so memory does not grow with the number
of cells beyond the histories themselves.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Protocol, runtime_checkable

import numpy as np

from kpi.window import KpiWindow
from model.accuracy import Accuracy
from model.predictor import Predictor
from training.backtest.config import BacktestConfig, lead_buckets, origins_of, training_part
from training.backtest.hours import HourlyErrors
from training.backtest.result import BacktestResult, CellScore, Example, Score, Skipped
from training.backtest.tally import Cut, Tally, add
from training.backtest.workers import tallies
from training.backtest.worst import WorstCells
from training.dataset import known_at
from training.errors import DataError

CHUNK_WINDOWS = 64
EXAMPLES = 6


@runtime_checkable
class Trainable(Protocol):
    """A forecaster that learns from the data before the first origin of every cell."""

    def fit(
        self,
        windows: Sequence[KpiWindow],
        config: BacktestConfig,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Learn from windows that end before anything is judged.

        Args:
            windows: Histories, one a cell.
            config: Horizon and levels to learn.
            on_progress: Called with the parts done and in all.
        """


@runtime_checkable
class Noted(Protocol):
    """A forecaster of which a reader has to know something."""

    @property
    def note(self) -> str:
        """That something, in a few words."""


@dataclass(frozen=True)
class Backtest:
    """How to run: where progress goes and how many processes work.

    Attributes:
        jobs: Processes; the result is the same for any number.
        on_progress: Called with the origins done and in all.
        on_fit: Called with a learner's name, and the parts of its learning done and in all.
        on_cell: Takes the scores of a cell once all its origins are done, by model, KPI and leads.
    """

    jobs: int = 1
    on_progress: Callable[[int, int], None] | None = None
    on_fit: Callable[[str, int, int], None] | None = None
    on_cell: Callable[[Sequence[CellScore]], None] | None = None

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise DataError(f"expected at least one job, got {self.jobs}")


@dataclass
class _Sums:
    """What adds up over the chunks."""

    worst: WorstCells
    scores: dict[tuple[str, str, int], Accuracy] = field(default_factory=dict)
    hours: dict[tuple[str, str], HourlyErrors] = field(default_factory=dict)
    fallbacks: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    examples: list[Example] = field(default_factory=list)
    series: int = 0
    skipped: list[Skipped] = field(default_factory=list)

    def add(self, part: Tally) -> None:
        add(self.hours, part.hours)
        self.fallbacks.update(part.fallbacks)
        for model, seconds in part.seconds.items():
            self.seconds[model] += seconds
        self.examples += part.examples
        self.series += part.series


def backtest(
    predictors: Sequence[Predictor],
    windows: Sequence[KpiWindow],
    config: BacktestConfig,
    how: Backtest | None = None,
) -> BacktestResult:
    """Score every predictor on every origin.

    Args:
        predictors: The forecasters, the one under test first; those that can learn do so first,
            from what lies before the first origin of every cell.
        windows: Histories, one a cell.
        config: What to test.
        how: Processes and progress.

    Raises:
        DataError: No window is long enough for one origin, or two forecasters share a name.
        HorizonError: A forecaster cannot look so far ahead.
    """
    how = how or Backtest()
    _check_names(predictors)
    cuts = _cuts(windows, config)
    _rehearse(predictors, cuts[0], config)
    fit_seconds = _learn(predictors, windows, config, how)
    sums = _Sums(WorstCells(predictors[0].identity.name), skipped=_without_origin(windows, config))
    open_scores: dict[int, dict[tuple[str, str, int], Accuracy]] = {}
    done = 0
    chunks = list(_chunks(cuts, CHUNK_WINDOWS))
    for chunk, part in zip(chunks, tallies(predictors, chunks, config, how.jobs), strict=True):
        sums.add(part)
        for (number, model, kpi, bucket), accuracy in part.scores.items():
            add(open_scores.setdefault(number, {}), {(model, kpi, bucket): accuracy})
        for number in [number for number in open_scores if number < chunk[-1].number]:
            _close(windows[number], open_scores.pop(number), sums, config, how)
        done += part.origins
        if how.on_progress:
            how.on_progress(done, len(cuts))
    for number in list(open_scores):
        _close(windows[number], open_scores.pop(number), sums, config, how)
    buckets = lead_buckets(config.horizon)
    tested = [windows[number] for number in sorted({cut.number for cut in cuts})]
    return BacktestResult(
        config=config,
        scores=[Score(m, k, *buckets[b], total) for (m, k, b), total in sums.scores.items()],
        examples=sums.examples,
        cells=len({window.cell for window in tested}),
        origins=len(cuts),
        step_seconds=tuple(sorted({window.step_seconds for window in tested})),
        hours=sums.hours,
        worst=sums.worst.found(),
        fallbacks=dict(sums.fallbacks),
        series=sums.series,
        notes={p.identity.name: p.note for p in predictors if isinstance(p, Noted) and p.note},
        skipped=sums.skipped,
        fit_seconds=fit_seconds,
        predict_seconds=dict(sums.seconds),
    )


def _check_names(predictors: Sequence[Predictor]) -> None:
    names = Counter(predictor.identity.name for predictor in predictors)
    if twice := [name for name, count in names.items() if count > 1]:
        raise DataError(f"expected forecasters with names of their own, got twice {twice}")
    if not predictors:
        raise DataError("expected at least one forecaster, got none")


def _cuts(windows: Sequence[KpiWindow], config: BacktestConfig) -> list[Cut]:
    cuts = [
        Cut(number, window, origin)
        for number, window in enumerate(windows)
        for origin in origins_of(window, config)
    ]
    if not cuts:
        longest = max((window.steps for window in windows), default=0)
        raise DataError(
            f"expected a cell with at least {config.enough_steps} samples for one origin with a "
            f"horizon of {config.horizon} in the last {config.test_ratio:.0%}; the longest has "
            f"{longest}"
        )
    for place in set(np.linspace(0, len(cuts) - 1, min(EXAMPLES, len(cuts))).round().astype(int)):
        cuts[place] = replace(cuts[place], shown=True)
    return cuts


def _rehearse(predictors: Sequence[Predictor], cut: Cut, config: BacktestConfig) -> None:
    """One forecast by whoever needs not learn: what is refused is refused before hours of work."""
    past = known_at(cut.window, cut.origin)
    for predictor in predictors:
        if not isinstance(predictor, Trainable):
            predictor.predict([past], config.horizon, config.levels)


def _learn(
    predictors: Sequence[Predictor],
    windows: Sequence[KpiWindow],
    config: BacktestConfig,
    how: Backtest,
) -> dict[str, float]:
    """Let the learners learn; seconds by name."""
    seconds = {}
    parts = [training_part(window, config) for window in windows]
    for predictor in predictors:
        if isinstance(predictor, Trainable):
            name = predictor.identity.name
            began = time.perf_counter()

            def show(done: int, total: int, name: str = name) -> None:
                if how.on_fit:
                    how.on_fit(name, done, total)

            predictor.fit(parts, config, show)
            seconds[name] = time.perf_counter() - began
    return seconds


def _without_origin(windows: Sequence[KpiWindow], config: BacktestConfig) -> list[Skipped]:
    return [
        Skipped(
            window.cell,
            f"{window.steps} samples of {window.step_seconds:g} s; {config.enough_steps} needed",
        )
        for window in windows
        if not origins_of(window, config)
    ]


def _close(
    window: KpiWindow,
    scores: dict[tuple[str, str, int], Accuracy],
    sums: _Sums,
    config: BacktestConfig,
    how: Backtest,
) -> None:
    """Hand on a cell that is done: to the totals, to the worst cells, to whoever listens."""
    add(sums.scores, scores)
    by_kpi: dict[str, dict[str, Accuracy]] = defaultdict(dict)
    for (model, kpi, _), accuracy in scores.items():
        add(by_kpi[kpi], {model: accuracy})
    for kpi, by_model in by_kpi.items():
        sums.worst.add(window.cell, kpi, by_model)
    if not any(accuracy.targets for accuracy in scores.values()):
        sums.skipped.append(Skipped(window.cell, "no value in its test part"))
    if how.on_cell:
        buckets = lead_buckets(config.horizon)
        how.on_cell(
            [
                CellScore(
                    window.cell, window.step_seconds, Score(model, kpi, *buckets[b], accuracy)
                )
                for (model, kpi, b), accuracy in scores.items()
            ]
        )


def _chunks(cuts: Sequence[Cut], size: int) -> Iterator[Sequence[Cut]]:
    rest = iter(cuts)
    while chunk := list(islice(rest, size)):
        yield chunk
