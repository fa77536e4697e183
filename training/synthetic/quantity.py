"""From activity to KPI values: units, magnitudes, natural limits, counting noise and saturation.

Axes: N series, L samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kpi.catalogue import KpiKind
from training.synthetic.filters import chance, log_uniform

KINDS = tuple(KpiKind)
KIND_SHARES: Mapping[KpiKind, float] = {
    KpiKind.COUNT: 0.12,
    KpiKind.GAUGE: 0.27,
    KpiKind.RATE: 0.15,
    KpiKind.VOLUME: 0.18,
    KpiKind.PERCENT: 0.15,
    KpiKind.RATIO: 0.07,
    KpiKind.DELAY: 0.06,
}

_LEAST_SCALE, _GREATEST_SCALE = 1e-3, 1e5
_GREATEST_EXACT_INTEGER = float(1 << 24)  # beyond it float32 skips integers
_GREATEST_MEAN_MULTIPLE = 1e3
_FULL_SHARE = 0.08


@dataclass(frozen=True)
class Quantities:
    """Series in the units of their kinds.

    Attributes:
        values: (N, L) float32.
        lower: (N,) natural lower limits, -inf where none.
        upper: (N,) natural upper limits, inf where none.
    """

    values: NDArray[np.float32]
    lower: NDArray[np.float32]
    upper: NDArray[np.float32]


def draw_kinds(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Indices into `KINDS` of `shape`, in the proportions of `KIND_SHARES`."""
    shares = [KIND_SHARES[kind] for kind in KINDS]
    return rng.choice(len(KINDS), shape, p=shares).astype(np.int64)


def to_quantities(
    rng: np.random.Generator,
    kinds: NDArray[np.int64],
    activity: NDArray[np.float32],
    congestion: NDArray[np.float32],
) -> Quantities:
    """Express activity as KPIs.

    Args:
        rng: Source of randomness.
        kinds: (N,) indices into `KINDS`.
        activity: (N, L) non-negative, level about 1.
        congestion: (N, L) how full the cell of each series is; throughput, delay and failures
            depend on it.
    """
    activity = np.minimum(activity, np.float32(_GREATEST_MEAN_MULTIPLE))
    values = np.empty_like(activity)
    lower = np.zeros(len(kinds), dtype=np.float32)
    upper = np.full(len(kinds), np.inf, dtype=np.float32)
    for index, kind in enumerate(KINDS):
        chosen = np.flatnonzero(kinds == index)
        if not len(chosen):
            continue
        values[chosen] = _EXPRESS[kind](rng, activity[chosen], congestion[chosen])
        if kind is KpiKind.GAUGE:
            lower[chosen] = -np.inf
        elif kind in (KpiKind.PERCENT, KpiKind.RATIO):
            upper[chosen] = 100.0 if kind is KpiKind.PERCENT else 1.0
    return Quantities(values, lower, upper)


_Express = Callable[
    [np.random.Generator, NDArray[np.float32], NDArray[np.float32]], NDArray[np.float32]
]


def _scale(rng: np.random.Generator, rows: int) -> NDArray[np.float32]:
    return log_uniform(rng, _LEAST_SCALE, _GREATEST_SCALE, (rows, 1))


def _volume(
    rng: np.random.Generator, activity: NDArray[np.float32], congestion: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Activity at some scale; a few have a constant part."""
    del congestion
    offset = rng.exponential(2.0, (len(activity), 1)) * chance(rng, 0.08, len(activity))[:, None]
    return (_scale(rng, len(activity)) * (activity + offset)).astype(np.float32)


def _gauge(
    rng: np.random.Generator, activity: NDArray[np.float32], congestion: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Anything: as a volume, lifted or lowered (levels in dB), turned over, or whole users."""
    del congestion
    rows = len(activity)
    offset = rng.uniform(-10.0, 10.0, (rows, 1)) * chance(rng, 0.2, rows)[:, None]
    sign = np.where(chance(rng, 0.06, rows), -1.0, 1.0)[:, None]
    values = (_scale(rng, rows) * sign * (activity + offset)).astype(np.float32)
    whole = np.flatnonzero(chance(rng, 0.12, rows))
    users = log_uniform(rng, 0.5, 500.0, (len(whole), 1))
    values[whole] = np.rint(users * activity[whole])
    return values


def _rate(
    rng: np.random.Generator, activity: NDArray[np.float32], congestion: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Throughput: what a cell carries (grows with load), or what a user gets (falls with it)."""
    carried = _scale(rng, len(activity)) * activity
    peak = _scale(rng, len(activity))
    loss = rng.uniform(0.3, 0.95, (len(activity), 1))
    noise = log_uniform(rng, 0.02, 0.5, (len(activity), 1))
    free = 1.0 - loss * np.minimum(congestion, 1.0)
    got = peak * free * np.exp(noise * rng.standard_normal(activity.shape, dtype=np.float32))
    by_user = chance(rng, 0.25, len(activity))[:, None]
    return np.where(by_user, got, carried).astype(np.float32)


def _count(
    rng: np.random.Generator, activity: NDArray[np.float32], congestion: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Events of a period: whole numbers, Poisson around the activity for half of the series."""
    del congestion
    rows = len(activity)
    mean = log_uniform(rng, 0.3, _GREATEST_SCALE, (rows, 1)) * activity
    counted = np.flatnonzero(chance(rng, 0.5, rows))
    mean[counted] = rng.poisson(mean[counted])
    return np.asarray(
        np.minimum(np.rint(mean), np.float32(_GREATEST_EXACT_INTEGER)), dtype=np.float32
    )


def _load(
    rng: np.random.Generator, activity: NDArray[np.float32], congestion: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Share of resources in use, 0..1, cut or bent at full use."""
    del congestion
    level = log_uniform(rng, 0.02, 0.7, (len(activity), 1))
    # Some are nearly always full: availability, and cells that lack capacity.
    level[chance(rng, _FULL_SHARE, len(activity))] = 1.0
    wanted = level * activity
    bent = chance(rng, 0.5, len(activity))[:, None]
    return np.asarray(np.where(bent, np.tanh(wanted), np.minimum(wanted, 1.0)), dtype=np.float32)


def _failures(
    rng: np.random.Generator, activity: NDArray[np.float32], congestion: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Share of attempts that fail, 0..1: more in congestion, coarse where attempts are few."""
    rows = len(activity)
    likely = log_uniform(rng, 5e-4, 0.1, (rows, 1)) * activity
    likely *= 1.0 + rng.exponential(2.0, (rows, 1)) * congestion**2
    likely = np.asarray(np.minimum(likely, 0.9), dtype=np.float32)
    # The busy hour's attempts stand for all hours: fewer at night only widens the noise.
    attempts = np.rint(log_uniform(rng, 30.0, 1e6, (rows, 1)) * (0.2 + congestion)) + 1.0
    counted = np.flatnonzero(chance(rng, 0.6, rows))
    seen = rng.poisson(likely[counted] * attempts[counted]) / attempts[counted]
    likely[counted] = np.minimum(seen, 1.0)
    return likely


def _share(
    rng: np.random.Generator, activity: NDArray[np.float32], congestion: NDArray[np.float32]
) -> NDArray[np.float32]:
    """0..1: load for 55 % of the series, failures for 25 %, success for 20 %."""
    kind = rng.random((len(activity), 1))
    failures = _failures(rng, activity, congestion)
    other = np.where(kind < 0.8, failures, 1.0 - failures)
    return np.where(kind < 0.55, _load(rng, activity, congestion), other).astype(np.float32)


def _percent(
    rng: np.random.Generator, activity: NDArray[np.float32], congestion: NDArray[np.float32]
) -> NDArray[np.float32]:
    """A share in percent; a quarter is reported in whole percent."""
    kind = rng.random((len(activity), 1))
    load = _load(rng, activity, congestion)
    share = np.where(kind < 0.7, load, _share(rng, activity, congestion)) * 100.0
    whole = chance(rng, 0.25, len(activity))[:, None] & (kind < 0.7)
    return np.where(whole, np.rint(share), share).astype(np.float32)


def _delay(
    rng: np.random.Generator, activity: NDArray[np.float32], congestion: NDArray[np.float32]
) -> NDArray[np.float32]:
    """A base delay plus queueing that explodes near full use."""
    rows = len(activity)
    base = log_uniform(rng, 0.5, 200.0, (rows, 1))
    full = np.minimum(congestion, 1.0)
    queue = rng.exponential(1.0, (rows, 1)) * full / (1.1 - full)
    wander = rng.uniform(0.0, 0.5, (rows, 1)) * activity
    noise = log_uniform(rng, 0.02, 0.5, (rows, 1))
    factor = np.exp(noise * rng.standard_normal(activity.shape, dtype=np.float32))
    return np.asarray(base * (1.0 + queue + wander) * factor, dtype=np.float32)


_EXPRESS: Mapping[KpiKind, _Express] = {
    KpiKind.COUNT: _count,
    KpiKind.GAUGE: _gauge,
    KpiKind.RATE: _rate,
    KpiKind.VOLUME: _volume,
    KpiKind.PERCENT: _percent,
    KpiKind.RATIO: _share,
    KpiKind.DELAY: _delay,
}
