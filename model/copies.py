"""What the forecast of a sample may start from: values that were seen at telling times.

The head mixes these candidates by a softmax and adds its quantiles to the mixture (a pointer, See
et al. 2017, for numbers). A plain linear path from the inputs would have one set of weights for
every sampling step; the mixture is chosen sample by sample.

Two candidates are known only where something is planned: on a holiday the last Sundays, in an event
what the last events made of the usual. Such days are too rare for a network of this size to find
out from flags alone.

Axis legend: B windows, K KPIs, T samples of history, S samples of context, M future samples,
R repeats of a period, C candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from model import lags
from model.lags import DAY_MS, WEEK_MS

RECENT_LENGTHS = (16, 64, 256)
DAYS, WEEKS, MONTH_DAYS = 7, 4, 28


class Copies(NamedTuple):
    """Candidates in scaled space (B, K, M, C), zero where unknown, and which are known."""

    values: Tensor
    known: Tensor


@dataclass(frozen=True)
class Past:
    """What candidates are taken from.

    Attributes:
        scaled: (B, K, T) scaled history, NaN where missing.
        smooth: (B, K, T) the same, smoothed for daily lags.
        month: (B, K, M, 28) the last days at the same time, None where days are no season.
        zero: (B, K) where zero lies in scaled space.
        context_steps: S, how many of the T samples the model sees.
        event_share: (B, S + M) share of each sample that planned events cover.
        sunday_days: int64 (B, M) days back to the last Sunday where a holiday is, else zero.
        step_ms: Length of a sample.
        ahead: M.
    """

    scaled: Tensor
    smooth: Tensor
    month: Tensor | None
    zero: Tensor
    context_steps: int
    event_share: Tensor
    sunday_days: Tensor
    step_ms: int
    ahead: int

    @property
    def steps(self) -> int:
        """T, which is also the position of the origin."""
        return self.scaled.shape[-1]

    @property
    def context(self) -> Tensor:
        """(B, K, S) the samples that the model sees."""
        return self.scaled[..., self.steps - self.context_steps :]


def candidates(past: Past, names: Sequence[str]) -> Copies:
    """The candidates `names` of each future sample.

    Args:
        past: What was seen, and what is planned.
        names: From `model.config.COPY_CANDIDATES`.
    """
    found = {**_recent(past), **_daily(past), **_weekly(past)}
    found |= {"holiday": _sundays(past), "event": _event(past, found)}
    unknown = past.scaled.new_full((*past.scaled.shape[:-1], past.ahead), torch.nan)
    chosen = [found.get(name) for name in names]
    values = torch.stack([unknown if part is None else part for part in chosen], dim=-1)
    known = ~torch.isnan(values)
    return Copies(torch.where(known, values, 0), known)


def _recent(past: Past) -> dict[str, Tensor | None]:
    """The newest sample, means of the newest ones, and zero: alike for all future samples."""
    flat = {"last": _last(past.context), "zero": past.zero}
    flat |= {f"mean_of_{n}": _recent_mean(past.context, n) for n in RECENT_LENGTHS}
    return {name: part[..., None].expand(-1, -1, past.ahead) for name, part in flat.items()}


def _daily(past: Past) -> dict[str, Tensor | None]:
    """A day ago, and a week and a month of days at the same time."""
    days = past.month
    if days is None:
        return {}
    week = days[..., :DAYS]
    return {
        "day_lag": days[..., 0],
        "day_mean": _mean(week, 2),
        "month_mean": _mean(days, DAYS + 1),
        "day_median": _median(week, 3),
        "month_median": _median(days, DAYS + 1),
    }


def _weekly(past: Past) -> dict[str, Tensor | None]:
    """A week ago, and four weeks at the same time of the week."""
    period = lags.period_steps(WEEK_MS, past.step_ms)
    if period is None:
        return {}
    weeks = lags.lagged(past.smooth, past.steps, past.steps + past.ahead, period, WEEKS)
    mean = _mean(weeks, 2)
    # Growth makes the last month lag behind: lift it by what the last week gained on it.
    day = lags.period_steps(DAY_MS, past.step_ms) or 1
    gained = _recent_mean(past.scaled, DAYS * day) - _recent_mean(past.scaled, MONTH_DAYS * day)
    return {
        "week_lag": weeks[..., 0],
        "week_mean": mean,
        "levelled_week_mean": mean + gained[..., None],
        "week_median": _median(weeks, 3),
    }


def _sundays(past: Past) -> Tensor | None:
    """(B, K, M) mean over the last four Sundays at the same time of day, where a holiday is."""
    day = lags.period_steps(DAY_MS, past.step_ms)
    if day is None or not past.sunday_days.any():
        return None
    position = past.steps + torch.arange(past.ahead)
    back = day * (past.sunday_days[..., None] + DAYS * torch.arange(WEEKS))  # (B, M, R)
    index = position[:, None] - back
    seen = (index >= 0) & (index < past.steps) & (past.sunday_days > 0)[..., None]
    flat = index.clamp(0, past.steps - 1).flatten(1)  # (B, M * R)
    kpis = past.smooth.shape[1]
    values = past.smooth.gather(-1, flat[:, None].expand(-1, kpis, -1))
    values = values.reshape(*values.shape[:2], *index.shape[1:])  # (B, K, M, R)
    return torch.where(seen[:, None], values, torch.nan).nanmean(-1)


def _event(past: Past, found: Mapping[str, Tensor | None]) -> Tensor | None:
    """(B, K, M) the usual with what the events of the context added to it, where an event is."""
    now = past.event_share[:, past.context_steps :] > 0.5  # (B, M)
    then = past.event_share[:, : past.context_steps] > 0.5  # (B, S)
    day = lags.period_steps(DAY_MS, past.step_ms)
    if day is None or not now.any() or not then.any():
        return None
    first = past.steps - past.context_steps
    days = lags.lagged(past.smooth, first, past.steps, day, DAYS)
    usual_then = lags.quantiles(days, (0.5,))[..., 0]  # (B, K, S)
    added = torch.where(then[:, None], past.context - usual_then, torch.nan).nanmean(-1)  # (B, K)
    usual = found["day_lag"]
    for name in ("day_median", "week_median"):
        better = found.get(name)
        if usual is not None and better is not None:
            usual = torch.where(torch.isnan(better), usual, better)
    if usual is None:
        return None
    return torch.where(now[:, None], usual + added[..., None], torch.nan)


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
