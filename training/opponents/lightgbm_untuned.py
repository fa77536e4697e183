"""LightGBM as one would try it first: nothing is tuned, and at most 100,000 rows teach.

It is a common yardstick for forecasters of cell load: 150 trees of 31 leaves a quantile on lags,
means, seasonal values, hour and weekday. More rows and tuned settings make it better; the opponent
`lightgbm-tuned` does that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from training.backtest.config import BacktestConfig
from training.opponents.boosting import (
    FEWEST_LESSONS,
    BoostedOpponent,
    Fitted,
    dataset,
    train_booster,
)
from training.opponents.fallback import Place
from training.opponents.lessons import lessons, level_floor, sample, training_rows
from training.opponents.rows import RowPlan

MAX_ROWS = 100_000
TREES = 150
SETTINGS = {
    "learning_rate": 0.08,
    "num_leaves": 31,
    "min_data_in_leaf": 100,
    "feature_fraction": 0.8,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
}
WINDOWS_PER_HORIZON = 4
SEED = 1


class LightGbmOpponent(BoostedOpponent):
    """Global direct quantile LightGBM, untuned, on at most 100,000 rows a KPI."""

    name = "LightGBM"
    note = (
        f"untuned and capped at {MAX_ROWS:,} rows a KPI; learnt from these data before the first "
        "origin"
    )

    def _plan(self, step_ms: int, horizon: int) -> RowPlan:
        return RowPlan(step_ms, horizon)

    def _parts(self, config: BacktestConfig) -> int:
        return len(config.levels)

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
        found = sample(found, max(1, MAX_ROWS // plan.horizon), SEED)
        floor = level_floor(found, plan.horizon)
        data = dataset(*training_rows(plan, found, floor))
        boosters = []
        for level in config.levels:
            boosters.append(train_booster(data, level, SETTINGS, TREES, SEED))
            on_part()
        return Fitted(plan, floor, tuple(boosters))
