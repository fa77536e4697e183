"""Whether a forecaster bears more context than it was trained with.

The same weights see one, two and four times the longest context of training: on the training part
of the hourly task (which taught none of the checkpoints) and on held-out synthetic cells. All three
see the same origins and targets, and the same samples serve for lags.

Axis legend: B windows, K KPIs, H steps of the horizon, Q levels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.accuracy.exam import Exam
from benchmarks.harness import Unavailable
from kpi.catalogue import Catalogue
from kpi.window import KpiWindow
from model import scaling
from model.accuracy import measure
from model.checkpoint import Checkpoint
from model.config import ForecasterConfig
from model.forecaster import Forecaster
from model.tokens import build_tokens
from model.transformer import LAG_WEEKS, TransformerPredictor
from training.batch import TrainingBatch
from training.loss import pinball
from training.source import SyntheticSource
from training.synthetic import BatchSpec

FACTORS = (1, 2, 4)
ORIGINS_A_CELL = 28
WEEK_STEPS = 168
BATCHES = 40
BATCH_SERIES = 16
LEAST_HISTORY_RATIO = 0.9
SEED = 5


def longer(checkpoint: Checkpoint, factor: int) -> Checkpoint:
    """The same weights with a context so many times as long."""
    return checkpoint.with_context(checkpoint.config.context_patches * factor)


def on_recorded(checkpoint: Checkpoint, exam: Exam, catalogue: Catalogue) -> dict[int, float]:
    """WQL by factor at the last daily origins of the training part of an hourly task."""
    longest = checkpoint.config.context_steps * max(FACTORS) + LAG_WEEKS * WEEK_STEPS
    windows, targets = daily_origins(exam, longest)
    found = {}
    for factor in FACTORS:
        predictor = TransformerPredictor(longer(checkpoint, factor), catalogue)
        forecasts = predictor.predict(windows, exam.task.horizon, exam.levels)
        quantiles = np.stack([forecast.values[0] for forecast in forecasts])
        found[factor] = measure(quantiles, targets, exam.levels).wql
    return found


def daily_origins(exam: Exam, history_steps: int) -> tuple[list[KpiWindow], NDArray[np.float32]]:
    """Histories (1, T) and targets (N, H) a day apart, up to the end of the training part.

    Where a training part is too short for a history of this length at all origins, the later ones
    that have it count.

    Raises:
        Unavailable: There is no such origin.
    """
    season, horizon = exam.task.season, exam.task.horizon
    windows, targets = [], []
    for part in exam.training_part():
        for back in range(ORIGINS_A_CELL):
            origin = part.steps - horizon - back * season
            target = part.values[0, origin : origin + horizon]
            if origin < history_steps or np.isnan(target).all():
                continue
            begin = origin - history_steps
            start_ms = part.start_ms + begin * part.step_ms
            history = part.values[:, begin:origin]
            windows.append(replace(part, values=history, start_ms=start_ms))
            targets.append(target)
    if not windows:
        raise Unavailable(
            f"the training part of {exam.name} is too short for histories of {history_steps} steps"
        )
    return windows, np.stack(targets)


def on_synthetic(checkpoint: Checkpoint, batches: int = BATCHES) -> dict[int, float]:
    """Pinball loss by factor on held-out synthetic cells with a history of the longest context.

    Targets and quantiles are compared in the model space of the shortest context, so that all
    factors are judged on one scale.
    """
    forecaster = {factor: longer(checkpoint, factor).build() for factor in FACTORS}
    losses: dict[int, list[float]] = {factor: [] for factor in FACTORS}
    for seed in _seeds_of_long_batches(checkpoint.config, batches):
        drawn = {
            factor: _source(checkpoint.config, factor).batch(np.random.default_rng(seed))
            for factor in FACTORS
        }
        short = drawn[1]
        context = short.series.values[..., -checkpoint.config.context_steps :]
        stats = scaling.measure(context)
        limit = scaling.INVERSE_LIMIT
        target = scaling.scale(short.target, stats).clamp(-limit, limit)
        seen = ~torch.isnan(context).all(-1, keepdim=True)  # (B, K, 1)
        target = torch.where(seen, target, torch.nan)
        for factor in FACTORS:
            values = _quantiles(forecaster[factor], drawn[factor])
            scaled = scaling.scale(values.flatten(-2), stats).reshape(values.shape)
            scaled = scaled.clamp(-limit, limit)
            losses[factor].append(float(pinball(scaled, target, checkpoint.config.levels)))
    return {factor: float(np.mean(found)) for factor, found in losses.items()}


def _quantiles(forecaster: Forecaster, batch: TrainingBatch) -> torch.Tensor:
    """float64 (B, K, H, Q) in KPI values."""
    config = forecaster.config
    with torch.inference_mode():
        tokens = build_tokens(batch.series, config, batch.target.shape[-1] // config.patch)
        return scaling.unscale(forecaster(tokens).sort(dim=-1).values, tokens.stats)


def _source(config: ForecasterConfig, factor: int) -> SyntheticSource:
    """The same draws for each factor, as a forecaster with so much context sees them."""
    longest = config.context_steps * max(FACTORS)
    spec = BatchSpec(
        series=BATCH_SERIES,
        max_context_steps=longest,
        max_history_steps=longest,
        max_horizon=config.max_horizon,
        patch=config.patch,
        held_out=True,
    )
    patches = config.context_patches * factor
    return SyntheticSource(replace(config, context_patches=patches), spec)


def _seeds_of_long_batches(config: ForecasterConfig, batches: int) -> Iterator[list[int]]:
    """Seeds whose batches have about as much history as the longest context holds."""
    source, found = _source(config, 1), 0
    for number in count():
        if found == batches:
            return
        seed = [SEED, number]
        steps = source.batch(np.random.default_rng(seed)).series.values.shape[-1]
        if steps >= LEAST_HISTORY_RATIO * config.context_steps * max(FACTORS):
            found += 1
            yield seed
