"""Tokens: what the forecaster sees of a window, patch by patch.

A token covers P samples of one KPI. Context tokens carry values; future tokens carry none. Both
carry what was seen one day and one week earlier, the calendar, and a few scalars. Each group of
inputs is one function, named in the configuration, so a later version can add groups and still
load a checkpoint that was trained without them.

Axis legend: B windows, K KPIs, T samples of history, N patches (context then future), P patch,
F inputs of a token.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from model import copies, lags, scaling
from model.calendar import CALENDAR_WIDTH
from model.config import ForecasterConfig
from model.copies import MONTH_DAYS, RECENT_LENGTHS, Copies, Past
from model.lags import DAY_MS, WEEK_MS
from model.planned import input_width, planned_part
from model.scaling import ScaleStats

RECENT_STEPS = 16
MONTH_LEVELS = (0.1, 0.5, 0.9)
ZERO_CENTRED_SIZE = 0.03
"""Of the mean size: what is smaller counts by its difference, what is greater by its ratio."""

SCALARS = 10


@dataclass(frozen=True)
class Series:
    """Windows of one sampling step as tensors, right-aligned at the origin.

    Attributes:
        values: float32 (B, K, T), NaN where missing; shorter histories are padded with NaN in
            front.
        step_ms: Length of a sample.
        calendar: (B, N, 14) for the context patches and then the future ones.
        planned: (B, N, W) for the same patches: events and holidays, see `model.planned`.
        kinds: int64 (B, K), index of the KPI's kind.
        lower: float32 (B, K), least possible value, -inf where there is none.
        upper: float32 (B, K), greatest possible value, inf where there is none.
        present: bool (B, K), False for a KPI that only fills the batch up.
    """

    values: Tensor
    step_ms: int
    calendar: Tensor
    planned: Tensor
    kinds: Tensor
    lower: Tensor
    upper: Tensor
    present: Tensor


@dataclass(frozen=True)
class Tokens:
    """What the forecaster takes in, and what is needed to read its answer.

    Attributes:
        inputs: float32 (B, K, N, F).
        visible: bool (B, K, N), False for a patch without any sample and for absent KPIs.
        kinds: int64 (B, K).
        future_patches: How many of the N patches lie after the origin.
        stats: Scaling of each series.
        copies: Candidates that the head may start from, where the configuration has them.
    """

    inputs: Tensor
    visible: Tensor
    kinds: Tensor
    future_patches: int
    stats: ScaleStats
    copies: Copies | None = None


@dataclass(frozen=True)
class _Draft:
    """Intermediate values that the input groups share."""

    series: Series
    config: ForecasterConfig
    scaled: Tensor  # (B, K, T), NaN where missing
    smooth: Tensor  # (B, K, T), for daily lags
    stats: ScaleStats
    context_patches: int
    future_patches: int

    @cached_property
    def month(self) -> Tensor | None:
        """(B, K, M, 28) the last days at the time of each future sample, if days are a season."""
        period = lags.period_steps(DAY_MS, self.series.step_ms)
        if period is None:
            return None
        return lags.lagged(self.smooth, self.scaled.shape[-1], self.last, period, MONTH_DAYS)

    @property
    def first(self) -> int:
        """Position of the first context sample; the origin is at T."""
        return self.scaled.shape[-1] - self.context_patches * self.config.patch

    @property
    def last(self) -> int:
        """One past the last future sample."""
        return self.scaled.shape[-1] + self.future_patches * self.config.patch

    def patched(self, samples: Tensor) -> Tensor:
        """(B, K, M) for all positions as (B, K, N, P)."""
        return samples.reshape(*samples.shape[:-1], -1, self.config.patch)

    def future_only(self, inputs: Tensor) -> Tensor:
        """(B, K, W) or (B, K, F, W) on the future tokens, zero on the context: (B, K, N, W)."""
        if inputs.dim() == 3:
            inputs = inputs[:, :, None].expand(-1, -1, self.future_patches, -1)
        padding = (0, 0, self.context_patches, 0)
        return torch.nn.functional.pad(inputs, padding)


def context_patches(config: ForecasterConfig, history_steps: int) -> int:
    """How many patches of context a history of this many samples fills, at least one."""
    return max(1, min(config.context_patches, math.ceil(history_steps / config.patch)))


def build_tokens(series: Series, config: ForecasterConfig, future_patches: int) -> Tokens:
    """Tokens of a batch; only the last `context_steps` samples enter as values and set the scale.

    Args:
        series: Histories of one sampling step.
        config: Shape of the forecaster.
        future_patches: How many patches of the future to append.
    """
    patches = context_patches(config, series.values.shape[-1])
    lacking = patches * config.patch - series.values.shape[-1]
    history = torch.nn.functional.pad(series.values, (max(0, lacking), 0), value=torch.nan)
    context = history[..., -patches * config.patch :]
    stats = scaling.measure(context)
    scaled = scaling.scale(history, stats)
    draft = _Draft(
        series=series,
        config=config,
        scaled=scaled,
        smooth=lags.smoothed(scaled, series.step_ms),
        stats=stats,
        context_patches=patches,
        future_patches=future_patches,
    )
    inputs = torch.cat([_GROUPS[name](draft) for name in config.inputs], dim=-1)
    seen = ~torch.isnan(draft.patched(context)).all(-1)  # (B, K, Nc)
    visible = torch.nn.functional.pad(seen, (0, future_patches), value=True)
    visible = visible & series.present[..., None]
    found = None
    if config.copies:
        found = copies.candidates(_past(draft), config.copies)
    return Tokens(inputs, visible, series.kinds, future_patches, stats, found)


def _past(draft: _Draft) -> Past:
    config, planned = draft.config, draft.series.planned
    ahead = draft.future_patches * config.patch
    sunday_days = planned_part(planned, config.patch, "sunday_days").flatten(1)[:, -ahead:]
    return Past(
        scaled=draft.scaled,
        smooth=draft.smooth,
        month=draft.month,
        zero=_scaled_zero(draft.stats).clamp(-8, 8),
        context_steps=draft.context_patches * config.patch,
        event_share=planned_part(planned, config.patch, "event_share").flatten(1),
        sunday_days=sunday_days.round().long(),
        step_ms=draft.series.step_ms,
        ahead=ahead,
    )


def token_width(config: ForecasterConfig) -> int:
    """Number of inputs F of a token."""
    widths = group_widths(config.patch)
    return sum(widths[name] for name in config.inputs)


def group_widths(patch: int) -> dict[str, int]:
    """Number of inputs of each group."""
    return {
        "value": 2 * patch,
        "day_lag": 2 * patch,
        "week_lag": 2 * patch,
        "day_mean": 3 * patch,
        "week_mean": 3 * patch,
        "month_mean": 2 * patch,
        "recent": 2 * RECENT_STEPS + len(RECENT_LENGTHS),
        "calendar": CALENDAR_WIDTH,
        "scalars": SCALARS,
        "planned": input_width(patch),
        "month_quantiles": 2 * len(MONTH_LEVELS) * patch,
    }


def step_scalar(step_ms: int) -> float:
    """How long a sample is, as an input: zero for a quarter of an hour."""
    return (math.log(step_ms / 1000) - math.log(900)) / 4


def rate_scalar(step_ms: int) -> float:
    """How many samples a day has, as an input."""
    return (math.log(DAY_MS / step_ms) - math.log(96)) / 4


def _with_mask(samples: Tensor) -> Tensor:
    """Samples (..., P) with NaN as zero, beside their mask: (..., 2P)."""
    seen = ~torch.isnan(samples)
    return torch.cat([torch.where(seen, samples, 0), seen.to(samples.dtype)], dim=-1)


def _value(draft: _Draft) -> Tensor:
    context = draft.scaled[..., draft.first :]
    future = context.new_full((*context.shape[:-1], draft.last - draft.scaled.shape[-1]), torch.nan)
    return _with_mask(draft.patched(torch.cat([context, future], dim=-1)))


def _lag(draft: _Draft, history: Tensor, period_ms: int) -> Tensor:
    period = lags.period_steps(period_ms, draft.series.step_ms)
    if period is None:
        shape = (*draft.scaled.shape[:-1], draft.last - draft.first)
        return _with_mask(draft.patched(draft.scaled.new_full(shape, torch.nan)))
    samples = lags.lagged(history, draft.first, draft.last, period, 1)[..., 0]
    return _with_mask(draft.patched(samples))


def _mean(draft: _Draft, history: Tensor, period_ms: int, repeats: int) -> Tensor:
    period = lags.period_steps(period_ms, draft.series.step_ms)
    if period is None:
        patches = draft.context_patches + draft.future_patches
        return draft.scaled.new_zeros(*draft.scaled.shape[:-1], patches, 3 * draft.config.patch)
    found = lags.moments(lags.lagged(history, draft.first, draft.last, period, repeats))
    return torch.cat([draft.patched(part) for part in found], dim=-1)


def _month_mean(draft: _Draft) -> Tensor:
    if draft.month is None:
        width = 2 * draft.config.patch
        return draft.future_only(draft.scaled.new_zeros(*draft.scaled.shape[:-1], width))
    found = lags.moments(draft.month)
    parts = [draft.patched(found.mean), draft.patched(found.seen_ratio)]
    return draft.future_only(torch.cat(parts, dim=-1))


def _month_quantiles(draft: _Draft) -> Tensor:
    """Quantiles over the last 28 days at the same time of day, in two spaces.

    The second is centred on zero instead of the mean: the small values of quiet hours lie close
    together in the first, and heavy tails make their means say little.
    """
    if draft.month is None:
        width = 2 * len(MONTH_LEVELS) * draft.config.patch
        return draft.future_only(draft.scaled.new_zeros(*draft.scaled.shape[:-1], width))
    found = lags.quantiles(draft.month, MONTH_LEVELS)  # (B, K, M, L)
    size = ZERO_CENTRED_SIZE * draft.series.values.double().abs().nanmean(-1)  # (B, K)
    size = torch.where(size > 0, size, 1.0)[..., None, None]
    values = scaling.unscale(found, draft.stats)
    both = torch.cat([found, (torch.asinh(values / size) / 3).float()], dim=-1)
    parts = [draft.patched(part) for part in torch.nan_to_num(both).unbind(-1)]
    return draft.future_only(torch.cat(parts, dim=-1))


def _recent(draft: _Draft) -> Tensor:
    context = draft.scaled[..., draft.first :]
    means = [lags.moments(context[..., -length:]).mean[..., None] for length in RECENT_LENGTHS]
    last = context[..., -RECENT_STEPS:]
    lacking = RECENT_STEPS - last.shape[-1]
    last = torch.nn.functional.pad(last, (lacking, 0), value=torch.nan)
    return draft.future_only(torch.cat([_with_mask(last), *means], dim=-1))


def _calendar(draft: _Draft) -> Tensor:
    kpis = draft.scaled.shape[1]
    return draft.series.calendar[:, None].expand(-1, kpis, -1, -1)


def _planned(draft: _Draft) -> Tensor:
    kpis = draft.scaled.shape[1]
    inputs = draft.series.planned[..., : input_width(draft.config.patch)]
    return inputs[:, None].expand(-1, kpis, -1, -1)


def _scaled_zero(stats: ScaleStats) -> Tensor:
    """(B, K) where zero lies in scaled space."""
    return torch.asinh(-stats.mean / stats.divisor)[..., 0].float()


def _scalars(draft: _Draft) -> Tensor:
    series, stats = draft.series, draft.stats
    mean, spread = stats.mean[..., 0], stats.divisor[..., 0]  # (B, K)
    zero = _scaled_zero(stats)
    lower = torch.asinh((series.lower.double() - mean) / spread).float()
    upper = torch.asinh((series.upper.double() - mean) / spread).float()
    context = draft.scaled[..., draft.first :]
    whole = torch.ones_like(zero)
    per_series = [
        whole * step_scalar(series.step_ms),
        whole * rate_scalar(series.step_ms),
        zero.clamp(-8, 8),
        torch.where(torch.isfinite(lower), lower.clamp(-8, 8), 0),
        torch.where(torch.isfinite(upper), upper.clamp(-8, 8), 0),
        torch.isfinite(upper).float(),
        torch.log(spread / mean.abs().clamp(min=1e-30)).clamp(-5, 5).float() / 2,
        _gap_ratio(context),
        torch.log1p((~torch.isnan(context)).float().sum(-1)) / 4,
    ]
    patches = draft.context_patches + draft.future_patches
    shared = torch.stack(per_series, dim=-1)[:, :, None].expand(-1, -1, patches, -1)
    is_future = draft.future_only(whole[..., None])
    return torch.cat([shared, is_future], dim=-1)


def _gap_ratio(context: Tensor) -> Tensor:
    """Share missing between the first sample seen and the origin; padding in front counts not."""
    seen = ~torch.isnan(context)
    steps = context.shape[-1]
    first = torch.where(seen, torch.arange(steps), steps).amin(-1)  # (B, K)
    span = (steps - first).clamp(min=1)
    return 1 - seen.sum(-1) / span


_GROUPS: Mapping[str, Callable[[_Draft], Tensor]] = {
    "value": _value,
    "day_lag": lambda draft: _lag(draft, draft.smooth, DAY_MS),
    "week_lag": lambda draft: _lag(draft, draft.smooth, WEEK_MS),
    "day_mean": lambda draft: _mean(draft, draft.smooth, DAY_MS, 7),
    "week_mean": lambda draft: _mean(draft, draft.smooth, WEEK_MS, 4),
    "month_mean": _month_mean,
    "recent": _recent,
    "calendar": _calendar,
    "scalars": _scalars,
    "planned": _planned,
    "month_quantiles": _month_quantiles,
}
