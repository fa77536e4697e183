"""Calibrate a checkpoint: learn from past forecasts by how much its quantiles are off.

Forecasts are made from origins in the last part of each cell's history, with what was known then,
and held against what came (`model/calibration.py` has the method). Weights never change.

Axis legend: K KPIs, T samples, H steps of the horizon, Q quantile levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpi.catalogue import Catalogue
from kpi.window import KpiWindow
from model.calibration import Calibration
from model.checkpoint import Checkpoint
from model.conformity import conformity
from model.transformer import TransformerPredictor
from training.dataset import cut_in_time, known_at, latest_end, windows_digest
from training.errors import DataError
from training.scores import GROUPS, ScoreSample
from training.source import Source

CHUNK_ORIGINS = 64
MIN_CONTEXT_STEPS = 32
STRETCHES = 4
"""Least division of time into groups; see `training/conformal.py`."""

CALIBRATION_STREAM = 7
"""Sets the batches of a seed apart from those that train and validate with it."""


@dataclass(frozen=True)
class CalibrateConfig:
    """How to calibrate.

    Attributes:
        calibration_ratio: Share of each cell's history, at its end, that origins lie in.
        max_origins: Most origins over all cells.
        horizon: Steps to forecast; None for as many as the checkpoint can and the data have.
        history_steps: Most samples that a forecast sees, where less will be known in use than is
            recorded; None for all before its origin.
        seed: Of the choice of origins and of the targets that are kept.
    """

    calibration_ratio: float = 0.3
    max_origins: int = 1_000
    horizon: int | None = None
    history_steps: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.calibration_ratio < 1:
            raise DataError(
                f"expected a calibration ratio between 0 and 1, got {self.calibration_ratio}"
            )
        if self.max_origins < 1:
            raise DataError(f"expected at least one origin, got {self.max_origins}")
        if self.horizon is not None and self.horizon < 1:
            raise DataError(f"expected a horizon of at least 1 step, got {self.horizon}")
        if self.history_steps is not None and self.history_steps < MIN_CONTEXT_STEPS:
            raise DataError(
                f"expected histories of at least {MIN_CONTEXT_STEPS} steps, got "
                f"{self.history_steps}"
            )


@dataclass(frozen=True)
class Origin:
    """A place to forecast from.

    Attributes:
        past: What is known there.
        future: float32 (K, H) what came, NaN beyond the end of the recording.
        group: What forecasts have a chance to be off in common, from 0 to `GROUPS`.
    """

    past: KpiWindow
    future: NDArray[np.float32]
    group: int


def fit_calibration(
    checkpoint: Checkpoint,
    windows: Sequence[KpiWindow],
    catalogue: Catalogue,
    config: CalibrateConfig | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Calibration:
    """Calibrate on recorded cells.

    Args:
        checkpoint: Weights to calibrate; a calibration that it has is not used.
        windows: Histories, one a cell; forecasts from the last part of each see what lies before.
        catalogue: KPI catalogue.
        config: How to calibrate.
        on_progress: Called with the origins done and in all.

    Raises:
        DataError: The histories are too short, or too few values are in them.
    """
    config = config or CalibrateConfig()
    predictor = TransformerPredictor(checkpoint, catalogue, calibrated=False)
    origins = Origins(windows, config, predictor.max_horizon)
    sample = ScoreSample(predictor.config.levels, predictor.max_horizon, config.seed)
    for done, chunk in origins.chunks():
        found = predictor.conformity([o.past for o in chunk], [o.future for o in chunk])
        for origin, scores in zip(chunk, found, strict=True):
            kinds = [catalogue.resolve(name).kind.number for name in origin.past.kpis]
            sample.add(scores[None], np.array([kinds]), np.array([origin.group]))
        if on_progress:
            on_progress(done, len(origins))
    return sample.calibration(
        {
            "data": windows_digest(windows),
            "data_until": latest_end(windows),
            "cells": origins.cells,
            "origins": len(origins),
            "horizon": origins.horizon,
            "calibration_ratio": config.calibration_ratio,
            "history_steps": config.history_steps,
            "seed": config.seed,
        }
    )


def calibrate_from_batches(
    checkpoint: Checkpoint,
    source: Source,
    batches: int,
    seed: int,
    *,
    provenance: Mapping[str, Any] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Calibration:
    """Calibrate on batches as they serve for training, of a source that taught nothing.

    Args:
        checkpoint: Weights to calibrate; a calibration that it has is not used.
        source: Gives the batches; each is a function of (seed, its number).
        batches: How many.
        seed: Of the batches and of the targets that are kept.
        provenance: What the source is, in plain values.
        on_progress: Called with the batches done and in all.

    Raises:
        DataError: Too few values are in the batches.
    """
    forecaster = checkpoint.build()
    sample = ScoreSample(checkpoint.config.levels, checkpoint.config.max_horizon, seed)
    for number in range(batches):
        batch = source.batch(np.random.default_rng([seed, CALIBRATION_STREAM, number]))
        scores = conformity(forecaster, forecaster.config, batch.series, batch.target)
        groups = np.full(len(scores), number % GROUPS)
        sample.add(scores.numpy(), batch.series.kinds.numpy(), groups)
        if on_progress:
            on_progress(number + 1, batches)
    return sample.calibration({**(provenance or {}), "batches": batches, "seed": seed})


class Origins:
    """Places to forecast from, evenly over the parts of all cells that calibrate.

    Each is drawn from a stretch of its own, so that a rhythm of the origins cannot meet one of the
    cell.
    """

    def __init__(
        self, windows: Sequence[KpiWindow], config: CalibrateConfig, max_horizon: int
    ) -> None:
        """Choose them.

        Raises:
            DataError: No history is long enough.
        """
        self._history_steps = config.history_steps
        ratio = config.calibration_ratio
        first = [max(MIN_CONTEXT_STEPS, cut_in_time(window, ratio)) for window in windows]
        usable = [index for index, window in enumerate(windows) if first[index] < window.steps]
        if not usable:
            longest = max((window.steps for window in windows), default=0)
            raise DataError(
                f"expected a cell with more than {MIN_CONTEXT_STEPS} samples, some of them in its "
                f"last {config.calibration_ratio:.0%}, to calibrate on; the longest has {longest}; "
                "add more history, or calibrate on a larger share of it"
            )
        longest = max(windows[index].steps - first[index] for index in usable)
        self.horizon = min(config.horizon or max_horizon, max_horizon, longest)
        """Steps to forecast: as asked for, but no more than the model and the data have."""
        rng = np.random.default_rng(config.seed)
        if len(usable) > config.max_origins:
            usable = sorted(rng.choice(usable, size=config.max_origins, replace=False).tolist())
        self.cells = len(usable)
        self._places: list[tuple[KpiWindow, int, int]] = []  # window, position, group
        stretches = max(STRETCHES, GROUPS // len(usable))
        total = sum(windows[index].steps - first[index] for index in usable)
        for number, index in enumerate(usable):
            window, span = windows[index], windows[index].steps - first[index]
            count = max(1, min(config.max_origins * span // total, span))
            parts = (np.arange(count) + rng.random(count)) / count  # 0 to 1, one a stretch
            for part in parts:
                position = first[index] + min(int(part * span), span - 1)
                group = number * stretches + int(part * stretches)
                self._places.append((window, position, group % GROUPS))

    def __len__(self) -> int:
        return len(self._places)

    def chunks(self) -> Iterator[tuple[int, list[Origin]]]:
        """A few at a time, with how many were given until then."""
        for begin in range(0, len(self), CHUNK_ORIGINS):
            chunk = self._places[begin : begin + CHUNK_ORIGINS]
            yield begin + len(chunk), [self._origin(*place) for place in chunk]

    def _origin(self, window: KpiWindow, position: int, group: int) -> Origin:
        future = np.full((len(window.kpis), self.horizon), np.nan, dtype=np.float32)
        coming = window.values[:, position : position + self.horizon]
        future[:, : coming.shape[1]] = coming
        return Origin(known_at(window, position, self._history_steps), future, group)
