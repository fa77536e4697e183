"""What both LightGBM opponents share: a global direct quantile regression, one a KPI and step.

One model learns from all cells; each quantile level has trees of its own; the quantiles of a
forecast are sorted. LightGBM: Ke et al. (2017).

Axis legend: N windows, H steps, F features, Q fitted levels, L levels asked for.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kpi.catalogue import Catalogue
from kpi.window import KpiWindow
from model.baseline import MAX_HORIZON_STEPS
from model.quantiles import at_levels
from training.backtest.config import BacktestConfig
from training.opponents.fallback import FallbackOpponent, Place
from training.opponents.lessons import Lesson, rows_of
from training.opponents.rows import MAX_CONTEXT_STEPS, RowPlan

FEWEST_LESSONS = 20

GroupKey = tuple[int, str]
"""Step in milliseconds and KPI."""


@dataclass(frozen=True)
class Fitted:
    """A regression of one KPI at one step.

    Attributes:
        plan: How windows become rows.
        floor: Part of every window's level; see `lessons.level_floor`.
        boosters: One a level.
    """

    plan: RowPlan
    floor: float
    boosters: tuple[Any, ...]

    def quantiles(self, some: Sequence[Lesson]) -> NDArray[np.float64]:
        """Sorted quantiles (N, H, Q) of windows, each ended by its origin."""
        out = np.empty((len(some), self.plan.horizon, len(self.boosters)))
        for numbers, rows, level in rows_of(self.plan, some, self.floor):
            flat = rows.reshape(-1, rows.shape[-1])
            for place, booster in enumerate(self.boosters):
                relative = booster.predict(flat, num_threads=1).reshape(rows.shape[:2])
                out[numbers, :, place] = relative * level[:, None]
        return np.sort(out, axis=-1)


class BoostedOpponent(FallbackOpponent):
    """LightGBM trained on what lies before the test part; before `fit` the last value answers."""

    def __init__(self, catalogue: Catalogue) -> None:
        super().__init__(catalogue)
        self._fitted: dict[GroupKey, Fitted] = {}
        self._config: BacktestConfig | None = None

    @property
    def max_horizon(self) -> int:
        """Longest horizon in steps: the one that was learnt."""
        return MAX_HORIZON_STEPS if self._config is None else self._config.horizon

    @property
    def level_range(self) -> tuple[float, float]:
        """Lowest and highest level that is answered: the outermost that were learnt."""
        if self._config is None:
            return super().level_range
        return self._config.levels[0], self._config.levels[-1]

    @property
    def context_steps(self) -> int:
        """Most samples that a forecast is made from."""
        return MAX_CONTEXT_STEPS

    @abstractmethod
    def _parts(self, config: BacktestConfig) -> int:
        """How many parts the learning of one KPI has, for a progress bar."""

    @abstractmethod
    def _learn(
        self,
        places: Sequence[Place],
        plan: RowPlan,
        config: BacktestConfig,
        on_part: Callable[[], None],
    ) -> Fitted | None:
        """Learn one KPI at one step; None where there is too little to learn from."""

    @abstractmethod
    def _plan(self, step_ms: int, horizon: int) -> RowPlan:
        """How windows become rows."""

    def fit(
        self,
        windows: Sequence[KpiWindow],
        config: BacktestConfig,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Learn every KPI at every step; see `training.backtest.Trainable`."""
        groups: dict[GroupKey, list[Place]] = defaultdict(list)
        for window in windows:
            for row, kpi in enumerate(window.kpis):
                groups[window.step_ms, kpi].append(Place(window, row))
        total = self._parts(config) * len(groups)
        done = 0
        self._config, self._fitted = config, {}

        def one_more() -> None:
            nonlocal done
            done = min(done + 1, total)
            if on_progress:
                on_progress(done, total)

        for number, (key, places) in enumerate(groups.items(), start=1):
            fitted = self._learn(places, self._plan(key[0], config.horizon), config, one_more)
            if fitted is not None:
                self._fitted[key] = fitted
            done = self._parts(config) * number - 1
            one_more()

    def _quantiles(
        self, places: Sequence[Place], horizon: int, levels: Sequence[float]
    ) -> list[NDArray[np.float64] | None]:
        answers: list[NDArray[np.float64] | None] = [None] * len(places)
        groups: dict[GroupKey, list[int]] = defaultdict(list)
        for number, place in enumerate(places):
            context = place.series[-self.context_steps :]
            if not np.isnan(context).all():
                groups[place.window.step_ms, place.window.kpis[place.row]].append(number)
        for key, members in groups.items():
            if key not in self._fitted or self._config is None:
                continue
            some = [Lesson(places[i], places[i].window.steps) for i in members]
            found = self._fitted[key].quantiles(some)[:, :horizon]  # (N, H, Q)
            if tuple(levels) != self._config.levels:
                found = at_levels(torch.from_numpy(found), self._config.levels, levels).numpy()
            for number, quantiles in zip(members, found, strict=True):
                answers[number] = quantiles
        return answers


def train_booster(
    data: Any, level: float, settings: dict[str, Any], trees: int, seed: int, **more: Any
) -> Any:
    """One booster on one thread: the same data, settings and seed give the same trees."""
    import lightgbm

    parameters = {
        **settings,
        "objective": "quantile",
        "alpha": level,
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "seed": seed,
        "verbose": -1,
    }
    return lightgbm.train(parameters, data, trees, **more)


def dataset(features: NDArray[np.float32], targets: NDArray[np.float32], **more: Any) -> Any:
    """Rows in LightGBM's own form, which several boosters share."""
    import lightgbm

    fixed = {"feature_pre_filter": False, "num_threads": 1, "verbose": -1, "force_row_wise": True}
    return lightgbm.Dataset(features, targets, params=fixed, **more)
