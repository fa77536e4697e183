"""LightGBM with a fair chance: more features, all rows that memory holds, settings tuned in time.

The last fifth of the training part is held back and judges a small grid of leaves and learning
rates at three quantile levels, each with as many trees as still help (early stopping). The best
settings then learn from the whole training part. Nothing of the test part is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from training.backtest.config import BacktestConfig
from training.opponents.boosting import (
    FEWEST_LESSONS,
    BoostedOpponent,
    Fitted,
    dataset,
    train_booster,
)
from training.opponents.fallback import Place
from training.opponents.lessons import Lesson, lessons, level_floor, sample, training_rows
from training.opponents.rows import RowPlan

HELD_BACK_RATIO = 0.2
LEAVES = (15, 31, 63)
LEARNING_RATES = (0.03, 0.08)
MAX_TREES = 800
PATIENCE_TREES = 40
TRIAL_ROWS = 100_000
MAX_FEATURE_BYTES = 512 << 20
WINDOWS_PER_HORIZON = 8
SEED = 1
FIXED: dict[str, Any] = {
    "min_data_in_leaf": 50,
    "feature_fraction": 0.7,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 1.0,
}
UNTRIED = (31, 0.05, 150)
"""Leaves, learning rate and trees where too little can be held back to try any."""


@dataclass(frozen=True)
class Tuned:
    """What the trials found best.

    Attributes:
        settings: Of the booster.
        levels: Quantile levels that were tried.
        trees: How many trees still helped at each of them.
        loss: Sum over them of the loss on what was held back.
    """

    settings: dict[str, Any]
    levels: tuple[float, ...]
    trees: tuple[int, ...]
    loss: float

    def trees_at(self, level: float) -> int:
        """Trees for any level, interpolated between those tried."""
        return max(1, round(float(np.interp(level, self.levels, self.trees))))


class TunedLightGbmOpponent(BoostedOpponent):
    """Global direct quantile LightGBM, tuned on a held-back piece of the training part."""

    name = "LightGBM (tuned)"
    note = (
        "leaves, learning rate and trees tuned on the last fifth of what it learns from, which is "
        "these data before the first origin"
    )

    def _plan(self, step_ms: int, horizon: int) -> RowPlan:
        return RowPlan(step_ms, horizon, extended=True)

    def _parts(self, config: BacktestConfig) -> int:
        trials = len(LEAVES) * len(LEARNING_RATES) * len(_tried_levels(config.levels))
        return trials + len(config.levels)

    def _learn(
        self,
        places: Sequence[Place],
        plan: RowPlan,
        config: BacktestConfig,
        on_part: Callable[[], None],
    ) -> Fitted | None:
        stride = max(1, plan.horizon // WINDOWS_PER_HORIZON)
        found = lessons(places, plan.horizon, plan.context_steps, stride)
        if len(found) < FEWEST_LESSONS:
            return None
        most = MAX_FEATURE_BYTES // (4 * plan.features * plan.horizon)
        found = sample(found, max(1, most), SEED)
        floor = level_floor(found, plan.horizon)
        best = _tune(found, plan, floor, config, on_part)
        data = dataset(*training_rows(plan, found, floor))
        boosters = []
        for level in config.levels:
            trees = best.trees_at(level)
            boosters.append(train_booster(data, level, best.settings, trees, SEED))
            on_part()
        return Fitted(plan, floor, tuple(boosters))


def split_in_time(found: Sequence[Lesson], horizon: int) -> tuple[list[Lesson], list[Lesson]]:
    """Windows that end before the last fifth of their series, and windows that begin in it."""
    teaching, judging = [], []
    for lesson in found:
        steps = len(lesson.place.series)
        cut = steps - max(horizon, round(HELD_BACK_RATIO * steps))
        if lesson.origin >= cut:
            judging.append(lesson)
        elif lesson.origin + horizon <= cut:
            teaching.append(lesson)
    return teaching, judging


def _tune(
    found: Sequence[Lesson],
    plan: RowPlan,
    floor: float,
    config: BacktestConfig,
    on_part: Callable[[], None],
) -> Tuned:
    levels = _tried_levels(config.levels)
    leaves, rate, trees = UNTRIED
    untried = Tuned(_settings(leaves, rate), levels, (trees,) * len(levels), np.inf)
    teaching, judging = split_in_time(found, plan.horizon)
    if min(len(teaching), len(judging)) < FEWEST_LESSONS:
        return untried
    most = max(1, TRIAL_ROWS // plan.horizon)
    data = dataset(*training_rows(plan, sample(teaching, most, SEED), floor))
    held_back = dataset(
        *training_rows(plan, sample(judging, max(1, most // 2), SEED), floor), reference=data
    )
    best = untried
    for leaves, rate in product(LEAVES, LEARNING_RATES):
        trial = _try(_settings(leaves, rate), data, held_back, levels, on_part)
        best = min(best, trial, key=lambda tuned: tuned.loss)
    return best


def _try(
    settings: dict[str, Any],
    data: Any,
    held_back: Any,
    levels: tuple[float, ...],
    on_part: Callable[[], None],
) -> Tuned:
    import lightgbm

    trees, loss = [], 0.0
    for level in levels:
        booster = train_booster(
            data,
            level,
            settings,
            MAX_TREES,
            SEED,
            valid_sets=[held_back],
            valid_names=["held back"],
            callbacks=[lightgbm.early_stopping(PATIENCE_TREES, verbose=False)],
        )
        trees.append(max(1, booster.best_iteration))
        loss += booster.best_score["held back"]["quantile"]
        on_part()
    return Tuned(settings, levels, tuple(trees), loss)


def _settings(leaves: int, learning_rate: float) -> dict[str, Any]:
    return {**FIXED, "num_leaves": leaves, "learning_rate": learning_rate}


def _tried_levels(levels: Sequence[float]) -> tuple[float, ...]:
    """Lowest, middle and highest level, each once."""
    return tuple(sorted({levels[0], levels[len(levels) // 2], levels[-1]}))
