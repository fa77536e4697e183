"""How to fit a forecaster: the settings of a run and its learning rate, step by step."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class FitConfig:
    """How to train; the checkpoint carries it.

    Attributes:
        seed: Of the first weights and of all data drawn.
        steps: Optimiser steps of the whole schedule.
        batches_per_step: Batches whose gradients are added up; each has one sampling step, so more
            of them make a step less one-sided.
        learning_rate: Peak, reached after `warmup_steps`, then cosine down to 2 %.
        warmup_steps: Steps of linear warm-up.
        weight_decay: AdamW's, on matrices only.
        gradient_norm: Gradients are clipped to this norm.
        average_decay: Of the moving average of the weights.
        evaluate_every: Steps between validations.
        validation_batches: Batches in a validation, the same ones each time.
        patience: Validations without improvement after which the run stops early.
        save_every_seconds: Wall time between saved states.
        half_products: Compute matrix products in bfloat16 (`training.accelerate`).
        compiled: Compile the forecaster's parts besides, where a C++ compiler is at hand.
    """

    seed: int = 0
    steps: int = 2_000
    batches_per_step: int = 2
    learning_rate: float = 2e-3
    warmup_steps: int = 100
    weight_decay: float = 0.05
    gradient_norm: float = 1.0
    average_decay: float = 0.998
    evaluate_every: int = 200
    validation_batches: int = 16
    patience: int = 10
    save_every_seconds: float = 60.0
    half_products: bool = False
    compiled: bool = False

    def __post_init__(self) -> None:
        counts = ("steps", "batches_per_step", "evaluate_every", "validation_batches", "patience")
        for name in counts:
            if getattr(self, name) < 1:
                raise ValueError(f"expected {name} of at least 1, got {getattr(self, name)}")
        for name in ("seed", "warmup_steps", "weight_decay"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"expected {name} of at least 0, got {getattr(self, name)}")
        for name in ("learning_rate", "gradient_norm"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"expected a {name} above 0, got {getattr(self, name)}")


def learning_rate(config: FitConfig, step: int) -> float:
    """Linear warm-up, then cosine down to 2 % of the peak at the last step."""
    if step < config.warmup_steps:
        return config.learning_rate * (step + 1) / config.warmup_steps
    done = (step - config.warmup_steps) / max(1, config.steps - config.warmup_steps)
    return config.learning_rate * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(done, 1.0))))
