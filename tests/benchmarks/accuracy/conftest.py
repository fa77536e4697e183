"""A yardstick of two short series, and checkpoints of a few hundred weights."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.accuracy import exam
from model.checkpoint import Checkpoint
from model.config import ForecasterConfig
from model.forecaster import Forecaster

START = np.datetime64("2026-01-05T00:00", "s")
HOUR = np.timedelta64(1, "h")
STEPS, TRAIN_END, CONTEXT, HORIZON, SEASON = 480, 384, 96, 6, 24


@dataclass(frozen=True)
class Windows:
    """As the yardstick's."""

    context: np.ndarray
    target: np.ndarray
    series: np.ndarray
    start: np.ndarray

    @property
    def filled(self) -> np.ndarray:
        return np.asarray(np.nan_to_num(self.context))


class Yardstick:
    """Two hourly series with a day; WQL is the mean pinball loss."""

    LEVELS = np.round(np.arange(0.1, 0.95, 0.1), 1)

    def __init__(self) -> None:
        self.week = None
        self.scored: list[np.ndarray] = []
        self.fitted: list[Any] = []

    def load(self, name: str) -> Any:
        assert name in exam.TASKS
        hours = np.arange(STEPS)
        noise = np.random.default_rng(1).normal(0, 2, (2, STEPS))
        values = np.stack([50 + 30 * np.sin(2 * np.pi * hours / 24), 10.0 + 0 * hours]) + noise
        values[1, 5] = np.nan
        stamps = START + hours * HOUR
        return SimpleNamespace(
            name=name,
            series={7: (values[0], stamps), 8: (values[1], stamps)},
            train_end={7: TRAIN_END, 8: TRAIN_END},
            context=CONTEXT,
            horizon=HORIZON,
            season=SEASON,
            week=self.week,
            step_seconds=3600,
        )

    def windows(self, task: Any, part: str) -> Windows:
        first, last = (TRAIN_END, STEPS) if part == "test" else (CONTEXT, TRAIN_END)
        rows = [
            (values[o - CONTEXT : o], values[o : o + HORIZON], name, stamps[o])
            for name, (values, stamps) in task.series.items()
            for o in range(first, last - HORIZON + 1, 12)
        ]
        context, target, series, start = zip(*rows, strict=True)
        return Windows(np.array(context), np.array(target), np.array(series), np.array(start))

    def seasonal_naive(self, _task: Any, season: int) -> Any:
        return lambda x: x[:, [-season + (h % season) for h in range(HORIZON)]]

    def with_residual_quantiles(
        self, _task: Any, train: Windows, test: Windows, point: Any
    ) -> np.ndarray:
        self.fitted.append(train)
        spread = np.nanstd(train.target - point(train.filled))
        return np.asarray(point(test.filled)[..., None] + spread * (self.LEVELS - 0.5))

    def lightgbm_quantiles(self, _task: Any, _train: Windows, test: Windows) -> np.ndarray:
        return np.repeat(np.nan_to_num(test.target)[..., None], len(self.LEVELS), axis=-1)

    def score(self, _task: Any, test: Windows, quantiles: np.ndarray) -> dict[str, float]:
        self.scored.append(quantiles)
        gap = test.target[..., None] - quantiles
        pinball = np.maximum(self.LEVELS * gap, (self.LEVELS - 1) * gap)
        inside = (gap[..., 0] >= 0) & (gap[..., -1] <= 0)
        wql = float(np.nanmean(pinball))
        return {"WQL": wql, "MASE": 1.0, "WAPE": 1.0, "cov80": float(inside.mean())}


@pytest.fixture
def yardstick(monkeypatch) -> Yardstick:
    """In the place of the one beside the checkout."""
    fake = Yardstick()
    monkeypatch.setattr(exam, "load_yardstick", lambda: fake)
    return fake


@pytest.fixture
def lte(yardstick) -> exam.Exam:
    """One task."""
    return exam.Exam.load("lte_hourly", yardstick)


@pytest.fixture
def tiny() -> ForecasterConfig:
    """A shape that computes in milliseconds."""
    return ForecasterConfig(
        width=16, layers=2, heads=2, feedforward=24, patch=8, context_patches=6, horizon_patches=2
    )


@pytest.fixture
def checkpoint(tiny) -> Checkpoint:
    """Untrained weights."""
    torch.manual_seed(0)
    weights = Forecaster(tiny).state_dict()
    return Checkpoint("rancast-small", "1", tiny, weights, "1", {"data": ["synthetic cells"]})
