"""The yardstick's tasks: windows of real cells to forecast from, and how forecasts are scored.

The yardstick and its three public traces (hourly LTE volume, two-minute PRB use, per-second
downlink rate) lie beside the checkout; where they are missing nothing is measured. Its windows,
metrics and opponents are taken as they are. What may be learnt from is the training part only.

Axis legend: N windows, C samples of context, T samples, H steps of the horizon, Q levels.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Unavailable
from kpi.window import KpiWindow
from model.predictor import Predictor

YARDSTICK = Path(__file__).resolve().parents[3] / "shared" / "tools" / "yardstick.py"
TASKS = {
    "lte_hourly": "traffic_volume_mb",
    "barcelona_2min": "RRU.PrbTotDl",
    "tractor_1s": "DRB.UEThpDl",
}
"""Tasks of the yardstick and the KPI of each."""

Scores = Mapping[str, float]
"""The yardstick's metrics by name: WQL, MASE, WAPE, cov80 and the number of windows."""


def load_yardstick() -> ModuleType:
    """The yardstick module.

    Raises:
        Unavailable: It does not lie beside the checkout.
    """
    if not YARDSTICK.is_file():
        raise Unavailable("the yardstick and its traces do not lie beside the checkout")
    spec = importlib.util.spec_from_file_location("yardstick", YARDSTICK)
    if spec is None or spec.loader is None:
        raise Unavailable(f"{YARDSTICK.name} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules["yardstick"] = module
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Exam:
    """One task.

    Attributes:
        name: Key of `TASKS`.
        yardstick: The module whose windows and metrics these are.
        task: The yardstick's task.
        test: The yardstick's test windows, with `context` (N, C) and `target` (N, H).
    """

    name: str
    yardstick: Any
    task: Any
    test: Any

    @staticmethod
    def load(name: str, yardstick: ModuleType | None = None) -> Exam:
        """The task of a name.

        Raises:
            Unavailable: The yardstick does not lie beside the checkout.
        """
        yardstick = yardstick or load_yardstick()
        task = yardstick.load(name)
        return Exam(name, yardstick, task, yardstick.windows(task, "test"))

    @cached_property
    def train(self) -> Any:
        """The yardstick's training windows."""
        return self.yardstick.windows(self.task, "train")

    @property
    def kpi(self) -> str:
        """Name of the KPI."""
        return TASKS[self.name]

    @property
    def levels(self) -> tuple[float, ...]:
        """The Q levels that are scored."""
        return tuple(float(level) for level in self.yardstick.LEVELS)

    def with_contexts(self, context: NDArray[np.float64]) -> Exam:
        """The same task with other contexts (N, C') before the same targets."""
        return replace(self, test=replace(self.test, context=context))

    def score(self, predictor: Predictor) -> dict[str, float]:
        """The yardstick's scores of a predictor on the test windows."""
        windows = to_windows(self.task, self.test, self.kpi)
        forecasts = predictor.predict(windows, self.task.horizon, self.levels)
        quantiles = np.stack([forecast.values[0] for forecast in forecasts]).astype(np.float64)
        return self.score_quantiles(quantiles)

    def score_quantiles(self, quantiles: NDArray[np.float64]) -> dict[str, float]:
        """The yardstick's scores of quantiles (N, H, Q); none of the KPIs can be below zero."""
        scores: dict[str, float] = self.yardstick.score(
            self.task, self.test, np.clip(quantiles, 0, None)
        )
        return scores

    def training_part(self) -> list[KpiWindow]:
        """What may be learnt from: each series up to where its test part begins."""
        step_ms = self.task.step_seconds * 1000
        parts = []
        for name, (values, stamps) in self.task.series.items():
            steps = self.task.train_end[name]
            if steps == 0:
                continue
            last_ms = int(stamps[steps - 1].astype("datetime64[ms]").astype(np.int64))
            parts.append(
                KpiWindow(
                    cell=str(name),
                    kpis=(self.kpi,),
                    start_ms=last_ms - (steps - 1) * step_ms,
                    step_ms=step_ms,
                    values=values[None, :steps].astype(np.float32),
                )
            )
        return parts


def to_windows(task: Any, test: Any, kpi: str) -> list[KpiWindow]:
    """The yardstick's contexts as windows; gaps stay gaps."""
    step_ms = task.step_seconds * 1000
    origins_ms = test.start.astype("datetime64[ms]").astype(np.int64)
    steps = test.context.shape[1]
    return [
        KpiWindow(
            cell=str(series),
            kpis=(kpi,),
            start_ms=int(origin) - steps * step_ms,
            step_ms=step_ms,
            values=context[None].astype(np.float32),
        )
        for series, origin, context in zip(test.series, origins_ms, test.context, strict=True)
    ]


def evaluate(predictor: Predictor, task_name: str) -> dict[str, float]:
    """The yardstick's scores of `predictor` on one task."""
    return Exam.load(task_name).score(predictor)
