"""Windows as no network should send them, for property tests: what a fuzzer draws.

Axis legend: K KPIs, T samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np
from hypothesis import strategies as st

from kpi.catalogue import Catalogue, KpiKind
from kpi.window import KpiWindow, PlannedEvent
from model.calibration import MOST_SHIFT, Calibration, step_buckets
from model.config import ForecasterConfig
from model.predictor import Forecast

GREATEST = float(np.finfo(np.float32).max)
LEAST_NORMAL = float(np.finfo(np.float32).tiny)
LEAST = float(np.finfo(np.float32).smallest_subnormal)
EDGES = (0.0, -0.0, LEAST, LEAST_NORMAL, 1.0, 100.0, GREATEST, -GREATEST)

STEPS_MS = (1, 100, 1_000, 60_000, 900_000, 3_600_000, 86_400_000, 604_800_000, 31_536_000_000)
STARTS_MS = (0, 1_767_571_200_000, 1_774_742_400_000, 4_000_000_000_000)
"""The epoch, a Monday, a change of the clock in Europe, and a year beyond all known holidays."""

Draw = Callable[[np.random.Generator, int], np.ndarray]

SHAPES: dict[str, Draw] = {
    "zeros": lambda _, steps: np.zeros(steps),
    "a constant": lambda rng, steps: np.full(steps, _size(rng)),
    "noise": lambda rng, steps: _size(rng) * rng.normal(size=steps),
    "noise in the last digit": lambda rng, steps: _size(rng) * (1 + 1e-7 * rng.normal(size=steps)),
    "a percentage": lambda rng, steps: np.clip(50 + 30 * rng.normal(size=steps), 0, 100),
    "edges of the type": lambda rng, steps: rng.choice(EDGES, size=steps),
    "every order of magnitude": lambda rng, steps: 10.0 ** rng.uniform(-45, 38, steps),
    "rare bursts": lambda rng, steps: GREATEST * (rng.random(steps) < 0.02),
    "the greatest value": lambda _, steps: np.full(steps, GREATEST),
    "the least value": lambda _, steps: np.full(steps, LEAST),
    "a walk": lambda rng, steps: _size(rng) * rng.normal(size=steps).cumsum(),
    "a switch": lambda rng, steps: np.where(np.arange(steps) < steps // 2, 0.0, _size(rng)),
}

GAPS: dict[str, Draw] = {
    "none": lambda _, steps: np.zeros(steps, dtype=np.bool_),
    "all": lambda _, steps: np.ones(steps, dtype=np.bool_),
    "half": lambda rng, steps: rng.random(steps) < 0.5,
    "most": lambda rng, steps: rng.random(steps) < 0.95,
    "all but one": lambda rng, steps: np.arange(steps) != rng.integers(steps + 1),
    "the end": lambda _, steps: np.arange(steps) >= steps - steps // 3,
}


def _size(rng: np.random.Generator) -> float:
    """A size of any order of magnitude that float32 has, and a little beyond."""
    return float(10.0 ** rng.uniform(-46, 39))


def representatives(catalogue: Catalogue) -> list[str]:
    """One KPI of every kind and pair of limits there is, and one that the catalogue lacks."""
    found: dict[Any, str] = {}
    for kpi in catalogue.kpis.values():
        if not kpi.cumulative:
            found.setdefault((kpi.kind, kpi.lower, kpi.upper), kpi.name)
    return [*found.values(), "Vendor.Unknown"]


@st.composite
def strange_windows(
    draw: st.DrawFn,
    names: Sequence[str],
    *,
    most: int = 4,
    most_steps: int = 300,
    countries: Sequence[str | None] = (None, "ES-CT"),
) -> list[KpiWindow]:
    """Windows of any length, step, KPIs, values, gaps, clock, holidays and events.

    Half of the time all share a step and a number of KPIs, so that they share a batch.
    """
    alike = draw(st.booleans())
    step_ms = draw(st.sampled_from(STEPS_MS))
    kpis = draw(st.integers(1, 3))
    number = count()

    def window() -> KpiWindow:
        width = kpis if alike else draw(st.integers(0, 4))
        own_step_ms = step_ms if alike else draw(st.sampled_from(STEPS_MS))
        steps = draw(st.one_of(st.sampled_from((0, 1, 2, 3, 16)), st.integers(0, most_steps)))
        start_ms = draw(st.sampled_from(STARTS_MS))
        chosen = draw(st.lists(st.sampled_from(names), min_size=width, max_size=width, unique=True))
        values = np.empty((width, steps), dtype=np.float32)
        for row in values:
            row[:] = draw(series(steps))
        spans = draw(st.lists(st.tuples(st.integers(-9, 400), st.integers(-9, 400)), max_size=2))
        return KpiWindow(
            f"cell={next(number)}",
            tuple(chosen),
            start_ms,
            own_step_ms,
            values,
            draw(st.sampled_from(("UTC", "Europe/Madrid", "Asia/Kathmandu"))),
            tuple(
                PlannedEvent(start_ms + begin * own_step_ms, start_ms + end * own_step_ms)
                for begin, end in spans
            ),
            draw(st.sampled_from(countries)),
        )

    return [window() for _ in range(draw(st.integers(1, most)))]


@st.composite
def series(draw: st.DrawFn, steps: int) -> np.ndarray:
    """Samples (T,) of one shape with one kind of gaps, as float32."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = SHAPES[draw(st.sampled_from(sorted(SHAPES)))](rng, steps)
    samples = np.clip(values, -GREATEST, GREATEST).astype(np.float32)
    samples[GAPS[draw(st.sampled_from(sorted(GAPS)))](rng, steps)] = np.nan
    return samples


@st.composite
def calibrations(draw: st.DrawFn, config: ForecasterConfig) -> Calibration:
    """Any calibration that a checkpoint may carry; some kinds of KPI are not in it."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    first_steps = step_buckets(config.max_horizon)

    def rows() -> tuple[tuple[float, ...], ...]:
        drawn = rng.uniform(-MOST_SHIFT, MOST_SHIFT, (len(first_steps), len(config.levels)))
        return tuple(map(tuple, drawn.tolist()))

    kinds = draw(st.sets(st.sampled_from(list(KpiKind))))
    return Calibration(
        config.levels, first_steps, {str(kind): rows() for kind in sorted(kinds)}, rows()
    )


def assert_sound(forecast: Forecast, window: KpiWindow, catalogue: Catalogue, horizon: int) -> None:
    """What holds of a forecast whatever it was made from.

    Quantiles ascend, lie within the KPI's limits and are finite, unless the KPI was never seen and
    lacks a limit; then there are none. Zeros alone, at least two of them, are answered with zeros.
    """
    assert forecast.cell == window.cell
    assert forecast.values.shape == (len(window.kpis), horizon, len(forecast.levels))
    assert forecast.values.dtype == np.float32
    assert 0 <= forecast.context.missing_ratio <= 1
    for name, values, samples in zip(window.kpis, forecast.values, window.values, strict=True):
        kpi = catalogue.resolve(name)
        seen = samples[~np.isnan(samples)]
        if not len(seen) and (kpi.lower is None or kpi.upper is None):
            assert np.isnan(values).all(), name
            continue
        assert np.isfinite(values).all(), name
        assert (values[..., 1:] >= values[..., :-1]).all(), name
        assert kpi.lower is None or values.min() >= kpi.lower, name
        assert kpi.upper is None or values.max() <= kpi.upper, name
        if len(seen) >= 2 and not seen.any():
            assert not values.any(), name


def assert_alike(one: Forecast, other: Forecast, tolerance_ratio: float) -> None:
    """Two forecasts agree to a share of the largest value of each KPI."""
    first, second = one.values.astype(np.float64), other.values.astype(np.float64)
    assert np.array_equal(np.isnan(first), np.isnan(second))
    first, second = np.nan_to_num(first), np.nan_to_num(second)
    size = np.abs(first).max(axis=(1, 2), keepdims=True, initial=0)
    assert (np.abs(first - second) <= tolerance_ratio * size).all()
