"""Contexts with less in them: samples missing here and there, a hole, a late end, a short history.

Axis legend: N windows, C samples of context.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MISSING_RATIO = 0.2
LONGEST_HOLE_STEPS = 24
SEED = 3

Contexts = NDArray[np.float64]
"""(N, C), NaN where missing."""


def hole_steps(context_steps: int) -> int:
    """Length of a hole: a day of hours, or a tenth of the context where that is less."""
    return min(LONGEST_HOLE_STEPS, context_steps // 10)


def with_gaps(contexts: Contexts) -> Contexts:
    """A fifth of the samples missing at random, and a hole that ends where the last tenth begins.

    The same contexts always lose the same samples.
    """
    steps = contexts.shape[1]
    lost = np.random.default_rng(SEED).random(contexts.shape) < MISSING_RATIO
    last_tenth = steps - steps // 10
    lost[:, last_tenth - hole_steps(steps) : last_tenth] = True
    return np.where(lost, np.nan, contexts)


def with_late_end(contexts: Contexts) -> Contexts:
    """The newest samples are missing, as where reports come late."""
    steps = contexts.shape[1]
    late = np.arange(steps) >= steps - hole_steps(steps)
    return np.where(late, np.nan, contexts)


def last_steps(contexts: Contexts, steps: int) -> Contexts:
    """(N, steps): only the end of each context, as where a cell is new."""
    return contexts[:, -steps:]
