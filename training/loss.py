"""The pinball loss in the model's own space.

Minimising it over many samples makes each output the quantile of its level (Koenker and Bassett
1978).

Axis legend: B windows, K KPIs, H steps, Q levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model import scaling
from model.config import ForecasterConfig
from model.forecaster import Forecaster
from model.tokens import Tokens, build_tokens
from training.batch import TrainingBatch


@dataclass(frozen=True)
class Lesson:
    """A batch as the forecaster learns from it.

    Attributes:
        tokens: What it sees.
        target: float32 (B, K, H) in scaled space, NaN where there is nothing to learn.
    """

    tokens: Tokens
    target: Tensor

    @property
    def observed(self) -> Tensor:
        """How many targets there are, a scalar."""
        return (~torch.isnan(self.target)).sum()


def make_lesson(batch: TrainingBatch, config: ForecasterConfig) -> Lesson:
    """Scale a batch; a series of which nothing was seen is no target."""
    future_patches = batch.target.shape[-1] // config.patch
    tokens = build_tokens(batch.series, config, future_patches)
    target = scaling.scale(batch.target, tokens.stats)
    limit = scaling.INVERSE_LIMIT
    seen = tokens.visible[..., : -tokens.future_patches].any(-1)  # (B, K)
    target = torch.where(seen[..., None], target.clamp(-limit, limit), torch.nan)
    return Lesson(tokens, target)


def lesson_loss(forecaster: Forecaster, lesson: Lesson, observed: Tensor | None = None) -> Tensor:
    """Pinball loss of a lesson, a scalar with a gradient.

    Args:
        forecaster: What learns.
        lesson: From what.
        observed: Targets to divide by where the lesson is a slice of a batch: those of the whole
            batch, so that the losses of the slices add up to that of the batch.
    """
    return pinball(
        forecaster(lesson.tokens), lesson.target, forecaster.config.levels, observed=observed
    )


def batch_loss(forecaster: Forecaster, batch: TrainingBatch) -> Tensor:
    """Pinball loss of one batch in scaled space, a scalar with a gradient."""
    return lesson_loss(forecaster, make_lesson(batch, forecaster.config))


def pinball(
    quantiles: Tensor, target: Tensor, levels: Sequence[float], *, observed: Tensor | None = None
) -> Tensor:
    """Mean of twice the pinball loss over the observed targets and all levels, a scalar.

    Args:
        quantiles: (B, K, H, Q), unsorted.
        target: (B, K, H), NaN where nothing was observed; those do not count. A batch without any
            observed target costs zero.
        levels: The Q levels.
        observed: What to divide by, by default the number of observed targets.
    """
    is_observed = ~torch.isnan(target)
    gap = torch.where(is_observed, target, 0)[..., None] - quantiles  # (B, K, H, Q)
    level = torch.tensor(levels, dtype=quantiles.dtype)
    cost = torch.maximum(level * gap, (level - 1) * gap).mean(-1)  # (B, K, H)
    count = is_observed.sum() if observed is None else observed
    return 2 * (cost * is_observed).sum() / count.clamp(min=1)
