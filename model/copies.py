"""What the forecast of a sample may start from: values that were seen at telling times.

The head mixes these candidates by a softmax and adds its quantiles to the mixture (a pointer, See
et al. 2017, for numbers). A plain linear path from the inputs would have one set of weights for
every sampling step; the mixture is chosen sample by sample.

Axis legend: B windows, K KPIs, T samples of history, M future samples, C candidates.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from model import lags
from model.lags import DAY_MS, WEEK_MS

CANDIDATES = (
    "day_lag",
    "week_lag",
    "day_mean",
    "week_mean",
    "month_mean",
    "levelled_week_mean",
    "day_median",
    "week_median",
    "month_median",
    "last",
    "mean_of_16",
    "mean_of_64",
    "mean_of_256",
    "zero",
)
RECENT_LENGTHS = (16, 64, 256)
DAYS, WEEKS, MONTH_DAYS = 7, 4, 28


class Copies(NamedTuple):
    """Candidates in scaled space (B, K, M, C), zero where unknown, and which are known."""

    values: Tensor
    known: Tensor


def candidates(
    context: Tensor, scaled: Tensor, smooth: Tensor, zero: Tensor, step_ms: int, ahead: int
) -> Copies:
    """The candidates of each of the `ahead` samples after the origin.

    Args:
        context: (B, K, C') scaled samples that the model sees, NaN where missing.
        scaled: (B, K, T) scaled history, NaN where missing.
        smooth: (B, K, T) the same, smoothed for daily lags.
        zero: (B, K) where zero lies in scaled space.
        step_ms: Length of a sample.
        ahead: M.
    """
    seasonal = _seasonal(scaled, smooth, step_ms, ahead)
    level = [_last(context), *(_recent_mean(context, length) for length in RECENT_LENGTHS), zero]
    flat = torch.stack(level, dim=-1)[:, :, None].expand(-1, -1, ahead, -1)
    values = torch.cat([seasonal, flat], dim=-1)
    known = ~torch.isnan(values)
    return Copies(torch.where(known, values, 0), known)


def _seasonal(scaled: Tensor, smooth: Tensor, step_ms: int, ahead: int) -> Tensor:
    """(B, K, M, 9) lags, their means and medians, NaN where there is no such season or sample."""
    steps = scaled.shape[-1]
    unknown = scaled.new_full((*scaled.shape[:-1], ahead), torch.nan)

    def repeats(period_ms: int, count: int) -> Tensor | None:
        period = lags.period_steps(period_ms, step_ms)
        if period is None:
            return None
        return lags.lagged(smooth, steps, steps + ahead, period, count)

    days, weeks = repeats(DAY_MS, MONTH_DAYS), repeats(WEEK_MS, WEEKS)
    day_parts = [unknown] * 5
    if days is not None:
        week = days[..., :DAYS]
        means = [_mean(week, 2), _mean(days, DAYS + 1)]
        day_parts = [days[..., 0], *means, _median(week, 3), _median(days, DAYS + 1)]
    week_parts = [unknown] * 4
    if weeks is not None:
        mean = _mean(weeks, 2)
        # Growth makes the last month lag behind: lift it by what the last week gained on it.
        day = lags.period_steps(DAY_MS, step_ms) or 1
        gained = _recent_mean(scaled, DAYS * day) - _recent_mean(scaled, MONTH_DAYS * day)
        week_parts = [weeks[..., 0], mean, mean + gained[..., None], _median(weeks, 3)]
    day_lag, day_mean, month_mean, day_median, month_median = day_parts
    week_lag, week_mean, levelled, week_median = week_parts
    means = [day_lag, week_lag, day_mean, week_mean, month_mean, levelled]
    return torch.stack([*means, day_median, week_median, month_median], dim=-1)


def _mean(repeats: Tensor, least: int) -> Tensor:
    """(B, K, M) means of (B, K, M, R); unknown where fewer than `least` were seen.

    With fewer it would be another candidate over again, and weigh double in the mixture.
    """
    return torch.where(_count(repeats) >= least, repeats.nanmean(-1), torch.nan)


def _median(repeats: Tensor, least: int) -> Tensor:
    """(B, K, M) medians, which a burst or an outage on one day does not move; likewise."""
    return torch.where(_count(repeats) >= least, lags.quantiles(repeats, (0.5,))[..., 0], torch.nan)


def _count(repeats: Tensor) -> Tensor:
    """(B, K, M) how many were seen."""
    return (~torch.isnan(repeats)).sum(-1)


def _last(context: Tensor) -> Tensor:
    """(B, K) the newest sample, zero where there is none."""
    seen = ~torch.isnan(context)
    position = torch.where(seen, torch.arange(context.shape[-1]), -1).amax(-1, keepdim=True)
    last = context.gather(-1, position.clamp(min=0))[..., 0]
    return torch.where(position[..., 0] >= 0, last, 0)


def _recent_mean(samples: Tensor, length: int) -> Tensor:
    """(B, K) mean of the last `length` samples, zero where none was seen."""
    return lags.moments(samples[..., -length:]).mean
