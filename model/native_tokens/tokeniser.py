"""From series to tokens, by the library where it can, by torch where it cannot.

`model.tokens` is the definition; what is computed here is the same up to rounding. Two candidates
that only planned days have (a holiday, an event) are left to torch: they are rare and need other
days' samples.

Axis legend: B windows, K KPIs, T samples of history, N patches, M future samples, F inputs of a
token, C candidates.
"""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from model import tokens
from model.calendar import CALENDAR_WIDTH
from model.config import COPY_CANDIDATES, TOKEN_INPUTS, ForecasterConfig
from model.copies import Copies
from model.lags import DAY_MS, WEEK_MS, period_steps, smoothing_radius
from model.native_tokens.library import load
from model.planned import input_width, planned_part, planned_width
from model.scaling import ScaleStats
from model.tokens import Series, Tokens, group_widths

_INTEGERS = (
    "steps",
    "patch",
    "context_patches",
    "future_patches",
    "width",
    "candidates",
    "day",
    "week",
    "radius",
    "calendar_width",
    "planned_width",
    "planned_stride",
)
_ABSENT = -1


class _Groups(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in TOKEN_INPUTS]


class _Candidates(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in COPY_CANDIDATES]


class _Plan(ctypes.Structure):
    """`rancast::Plan`, field by field."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in _INTEGERS),
        ("step_scalar", ctypes.c_float),
        ("rate_scalar", ctypes.c_float),
        ("groups", _Groups),
        ("copies", _Candidates),
    ]


def build_tokens(series: Series, config: ForecasterConfig, future_patches: int) -> Tokens:
    """Tokens of a batch; see `model.tokens.build_tokens`, whose answer this is up to rounding."""
    library = load()
    function = library.function
    fits = function is not None and library.plan_bytes == ctypes.sizeof(_Plan)
    if function is None or not fits or not _is_plain(series, config, future_patches):
        return tokens.build_tokens(series, config, future_patches)
    windows, kpis, steps = series.values.shape
    patches = tokens.context_patches(config, steps)
    plan = _plan(series, config, patches, future_patches)
    ahead = (windows, kpis, future_patches * config.patch, len(config.copies))
    inputs = torch.zeros(windows, kpis, patches + future_patches, plan.width)
    visible = torch.empty(inputs.shape[:3], dtype=torch.bool)
    stats = ScaleStats(*(torch.empty(windows, kpis, 1, dtype=torch.float64) for _ in range(2)))
    copies = Copies(torch.zeros(ahead), torch.zeros(ahead, dtype=torch.bool))
    given = [
        each.contiguous()
        for each in (
            series.values,
            series.calendar,
            series.planned,
            series.lower,
            series.upper,
            series.present,
        )
    ]
    status = function(
        ctypes.byref(plan),
        ctypes.c_int64(windows),
        ctypes.c_int64(kpis),
        *map(_address, (*given, inputs, visible, *stats, *copies)),
    )
    if status:
        raise MemoryError("expected memory for the tokens of a series, got none")
    found = copies if config.copies else None
    return Tokens(inputs, visible, series.kinds, future_patches, stats, found)


def _is_plain(series: Series, config: ForecasterConfig, future_patches: int) -> bool:
    """Whether the library can answer: the right shapes and types, and no planned day ahead.

    What does not fit is left to torch, which refuses it in its own words.
    """
    windows, kpis, steps = series.values.shape
    patches = tokens.context_patches(config, steps) + future_patches
    floats = (series.values, series.calendar, series.planned, series.lower, series.upper)
    if any(each.dtype != torch.float32 or not each.is_cpu for each in floats):
        return False
    if series.present.dtype != torch.bool or not series.present.is_cpu:
        return False
    if any(x.shape != (windows, kpis) for x in (series.lower, series.upper, series.present)):
        return False
    if series.calendar.shape != (windows, patches, CALENDAR_WIDTH):
        return False
    if series.planned.shape != (windows, patches, planned_width(config.patch)):
        return False
    if bool(series.values.isinf().any()) or (
        torch.is_grad_enabled() and series.values.requires_grad
    ):
        return False
    if not {"holiday", "event"} & set(config.copies):
        return True
    ahead = future_patches * config.patch
    days = planned_part(series.planned, config.patch, "sunday_days").flatten(1)[:, -ahead:]
    events = planned_part(series.planned, config.patch, "event_share").flatten(1)[:, -ahead:]
    return not bool((days > 0.5).any() or (events > 0.5).any())


def _plan(series: Series, config: ForecasterConfig, patches: int, future_patches: int) -> _Plan:
    widths, begin, offsets = group_widths(config.patch), 0, dict.fromkeys(TOKEN_INPUTS, _ABSENT)
    for name in config.inputs:
        offsets[name] = begin
        begin += widths[name]
    places = dict.fromkeys(COPY_CANDIDATES, _ABSENT)
    places |= {name: place for place, name in enumerate(config.copies)}
    return _Plan(
        steps=series.values.shape[-1],
        patch=config.patch,
        context_patches=patches,
        future_patches=future_patches,
        width=begin,
        candidates=len(config.copies),
        day=period_steps(DAY_MS, series.step_ms) or 0,
        week=period_steps(WEEK_MS, series.step_ms) or 0,
        radius=smoothing_radius(series.step_ms),
        calendar_width=CALENDAR_WIDTH,
        planned_width=input_width(config.patch),
        planned_stride=series.planned.shape[-1],
        step_scalar=tokens.step_scalar(series.step_ms),
        rate_scalar=tokens.rate_scalar(series.step_ms),
        groups=_Groups(**offsets),
        copies=_Candidates(**places),
    )


def _address(tensor: Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())
