"""What the forecaster is compared with on each task.

Naive forecasts get the quantiles of their own residuals on the training windows. LightGBM learns
from the training part of the task: once as the yardstick has it (untuned, at most 100,000 rows),
once tuned on the last fifth of the training part, on all rows that half a gibibyte holds.

Axis legend: C samples of context.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.accuracy.damage import last_steps
from benchmarks.accuracy.exam import Exam, Scores
from kpi.catalogue import Catalogue
from training.backtest.config import BacktestConfig
from training.opponents.lightgbm_tuned import TunedLightGbmOpponent
from training.opponents.rows import RowPlan

LIGHTGBM = "LightGBM (untuned, 100,000 rows)"
LIGHTGBM_TUNED = "LightGBM (tuned)"
SEASONAL_NAIVE = "seasonal naive"
LAST_VALUE = "last value"
WEEKLY_NAIVE = "weekly naive"


@dataclass(frozen=True)
class _TaskPlan(RowPlan):
    """Rows from no more context than the test windows have.

    Attributes:
        most_steps: C of the task.
    """

    most_steps: int = 0

    @property
    def context_steps(self) -> int:
        """C."""
        return min(super().context_steps, self.most_steps)


class TaskLightGbm(TunedLightGbmOpponent):
    """The tuned LightGBM of `rancast backtest`, with the contexts of one task."""

    def __init__(self, catalogue: Catalogue, context_steps: int) -> None:
        super().__init__(catalogue)
        self._context_steps = context_steps

    @property
    def context_steps(self) -> int:
        """Most samples that a forecast is made from."""
        return self._context_steps

    def _plan(self, step_ms: int, horizon: int) -> RowPlan:
        return _TaskPlan(step_ms, horizon, extended=True, most_steps=self._context_steps)


def naive_scores(task_name: str) -> dict[str, Scores]:
    """Scores of the naive forecasts that make sense for a task."""
    return naive_forecasts(Exam.load(task_name))


def naive_forecasts(exam: Exam) -> dict[str, Scores]:
    """Scores of the last value and of the last day and week, where the task has such seasons."""
    seasons = {SEASONAL_NAIVE: exam.task.season, LAST_VALUE: 1}
    if exam.task.week:
        seasons[WEEKLY_NAIVE] = exam.task.week
    return {name: _naive(exam, exam.train, season) for name, season in seasons.items()}


def cold_naive(exam: Exam, steps: int) -> Scores:
    """Scores of the last season repeated, where only the last `steps` samples are known.

    Its residuals come from training windows that are cut alike.
    """
    short = replace(exam.train, context=last_steps(exam.train.context, steps))
    return _naive(exam.with_contexts(last_steps(exam.test.context, steps)), short, exam.task.season)


def _naive(exam: Exam, train: Any, season: int) -> Scores:
    quantiles = exam.yardstick.with_residual_quantiles(
        exam.task, train, exam.test, exam.yardstick.seasonal_naive(exam.task, season)
    )
    return exam.score_quantiles(quantiles)


def all_scores(exam: Exam, catalogue: Catalogue) -> Iterator[tuple[str, Scores]]:
    """Scores of all opponents on a task, one by one; LightGBM's only where it is installed."""
    yield from naive_forecasts(exam).items()
    if find_spec("lightgbm") is None:
        return
    untuned = exam.yardstick.lightgbm_quantiles(exam.task, exam.train, exam.test)
    yield LIGHTGBM, exam.score_quantiles(np.asarray(untuned))
    tuned = TaskLightGbm(catalogue, exam.task.context)
    tuned.fit(exam.training_part(), BacktestConfig(horizon=exam.task.horizon, levels=exam.levels))
    yield LIGHTGBM_TUNED, exam.score(tuned)
