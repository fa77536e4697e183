"""The samples one day and one week earlier, and their means: long memory at little cost.

A context of 768 samples at one minute is half a day, and patches of 16 do not line up with 24
hours, so seasonal lags enter each token as inputs. A lag of a future sample is the nearest whole
multiple of the period that lies in the history.

Axis legend: B windows, K KPIs, T samples of history, M positions asked for, R repeats of the
period.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS
DENSE_SAMPLES_A_DAY = 144
MAX_SMOOTHING_RADIUS = 20
MAX_HISTORY_STEPS = 2_880
"""Most samples that one window brings into a model, whatever is stored or sent: thirty days of
quarter hours. Training draws histories up to the same bound."""


class LagMoments(NamedTuple):
    """Statistics over repeats of a period, each (B, K, M); zero where nothing was seen."""

    mean: Tensor
    spread: Tensor
    seen_ratio: Tensor


def period_steps(period_ms: int, step_ms: int) -> int | None:
    """Steps in a period, or None where the step is too coarse for the period to be a season."""
    steps = round(period_ms / step_ms)
    return steps if steps >= 2 else None


def lagged(history: Tensor, first: int, last: int, period: int, repeats: int) -> Tensor:
    """Samples one to `repeats` periods before the positions first..last-1.

    Args:
        history: (B, K, T), NaN where missing.
        first: First position asked for; T is the first future sample.
        last: One past the last position.
        period: Steps in a period.
        repeats: How many periods back, R.

    Returns:
        (B, K, M, R), NaN where missing or before the history.
    """
    steps = history.shape[-1]
    position = torch.arange(first, last)
    periods_back = torch.where(position < steps, 1, (position - steps) // period + 1)  # (M,)
    index = position[:, None] - period * (periods_back[:, None] + torch.arange(repeats))
    values = history[..., index.clamp(min=0)]  # (B, K, M, R)
    return torch.where(index >= 0, values, torch.nan)


def moments(samples: Tensor) -> LagMoments:
    """Mean, standard deviation and share seen over the last axis of (B, K, M, R)."""
    seen = ~torch.isnan(samples)
    values = torch.where(seen, samples, 0)
    count = seen.sum(-1).clamp(min=1)
    mean = values.sum(-1) / count
    deviation = torch.where(seen, values - mean[..., None], 0)
    spread = (deviation.square().sum(-1) / count).sqrt()
    return LagMoments(mean, spread, seen.float().mean(-1))


def quantiles(samples: Tensor, levels: Sequence[float]) -> Tensor:
    """Quantiles over the last axis of (B, K, M, R), NaN left out: (B, K, M, L).

    Interpolated between samples; NaN where nothing was seen.
    """
    ordered = samples.sort(-1).values  # NaN comes last
    count = (~torch.isnan(samples)).sum(-1, keepdim=True)
    place = (count - 1).clamp(min=0) * torch.tensor(levels, dtype=samples.dtype)  # (B, K, M, L)
    below = ordered.gather(-1, place.floor().long())
    above = ordered.gather(-1, place.ceil().long())
    return below + (above - below) * (place - place.floor())


def smoothing_radius(step_ms: int) -> int:
    """How many samples to both sides `smoothed` takes the mean of; 0 where there is no need."""
    return min(DAY_MS // step_ms // DENSE_SAMPLES_A_DAY, MAX_SMOOTHING_RADIUS)


def smoothed(history: Tensor, step_ms: int) -> Tensor:
    """A local mean of densely sampled history (B, K, T), for lags; other history is returned as is.

    One sample of two minutes, a day ago, says little about now: the mean around it says more.
    """
    radius = smoothing_radius(step_ms)
    if radius < 1:
        return history
    seen = ~torch.isnan(history)
    total = _window_sum(torch.where(seen, history, 0).double(), radius)
    count = _window_sum(seen.double(), radius)
    return torch.where(count > 0, total / count.clamp(min=1), torch.nan).to(history.dtype)


def _window_sum(values: Tensor, radius: int) -> Tensor:
    """Sum over +-radius samples along the last axis."""
    cumulative = torch.nn.functional.pad(values.cumsum(-1), (1, 0))  # (B, K, T + 1)
    steps = values.shape[-1]
    position = torch.arange(steps)
    above = (position + radius + 1).clamp(max=steps)
    below = (position - radius).clamp(min=0)
    return cumulative[..., above] - cumulative[..., below]
