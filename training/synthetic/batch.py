"""One batch of synthetic cells, drawn in one call: the training data of the forecaster.

A batch has one sampling step and one length; its cells differ in everything else. It is a pure
function of the random generator, so a seed names a training run's data exactly.

Axes: B cells, K KPIs, T history samples, H future samples, L = T + H.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.lags import MAX_HISTORY_STEPS
from training.synthetic.correlate import congestion, correlate
from training.synthetic.family import draw_activity, draw_families
from training.synthetic.faults import add_faults
from training.synthetic.filters import chance
from training.synthetic.planned import Planned, draw_planned
from training.synthetic.quantity import draw_kinds, to_quantities
from training.synthetic.timing import DAY_MS, Clock, draw_starts, draw_timing

_SINGLE_KPI_SHARE = 0.5
_OWN_FAMILY_SHARE = 0.15


@dataclass(frozen=True)
class BatchSpec:
    """What to draw.

    Attributes:
        series: B·K, about how many series a batch holds.
        max_kpis: Most KPIs of one cell.
        max_context_steps: Most samples before the origin that a model sees.
        max_history_steps: Most samples before the origin in all; lags reach into them.
        max_horizon: Most samples after the origin.
        patch: Every length is a whole number of patches of this many samples.
        held_out: Draw from the noise, profile shapes and periods that training never sees.
    """

    series: int = 32
    max_kpis: int = 4
    max_context_steps: int = 768
    max_history_steps: int = MAX_HISTORY_STEPS
    max_horizon: int = 192
    patch: int = 16
    held_out: bool = False

    def __post_init__(self) -> None:
        if self.series < 1 or self.max_kpis < 1 or self.patch < 1:
            raise ValueError(
                f"series {self.series}, max_kpis {self.max_kpis} and patch {self.patch} must be "
                "at least 1"
            )
        if self.max_context_steps < max(self.patch, 32) or self.max_horizon < self.patch:
            raise ValueError(
                f"max_context_steps {self.max_context_steps} and max_horizon {self.max_horizon} "
                f"must hold a patch of {self.patch}, and the context at least 32 samples"
            )
        if self.max_history_steps < self.max_context_steps:
            raise ValueError(
                f"max_history_steps {self.max_history_steps} includes the context and cannot be "
                f"under max_context_steps {self.max_context_steps}"
            )


@dataclass(frozen=True)
class SyntheticBatch:
    """Cells with their past and their future.

    Attributes:
        values: (B, K, T + H) what reporting gives; NaN is missing. A model may see the first T.
        target: (B, K, H) the last H of `values`.
        context_steps: Samples before the origin by which faults were laid out; all may be seen.
        horizon: H, a whole number of patches.
        start_ms: (B,) start of column 0, milliseconds since the epoch, UTC.
        step_ms: Sampling step.
        kinds: (B, K) index into `list(kpi.catalogue.KpiKind)`.
        lower: (B, K) natural lower limits, -inf where none.
        upper: (B, K) natural upper limits, inf where none.
        planned: Holidays and events of the B cells.
    """

    values: NDArray[np.float32]
    target: NDArray[np.float32]
    context_steps: int
    horizon: int
    start_ms: NDArray[np.int64]
    step_ms: int
    kinds: NDArray[np.int64]
    lower: NDArray[np.float32]
    upper: NDArray[np.float32]
    planned: Planned


def sample_batch(rng: np.random.Generator, spec: BatchSpec) -> SyntheticBatch:
    """Draw a batch; the same state of `rng` and the same `spec` give the same bits.

    Half of the batches have one KPI a cell, the others two to `spec.max_kpis`.
    """
    timing = draw_timing(
        rng,
        max_context_steps=spec.max_context_steps,
        max_history_steps=spec.max_history_steps,
        max_horizon=spec.max_horizon,
        patch=spec.patch,
        held_out=spec.held_out,
    )
    kpis = 1
    if spec.max_kpis > 1 and rng.random() >= _SINGLE_KPI_SHARE:
        kpis = int(rng.integers(2, spec.max_kpis, endpoint=True))
    cells = max(1, spec.series // kpis)
    length = timing.history_steps + timing.horizon
    start_ms = draw_starts(rng, cells, timing.step_ms)
    planned = draw_planned(rng, timing.regime, timing.step_ms, start_ms, length, timing.horizon)
    clock = Clock(timing.regime, timing.step_ms, np.repeat(start_ms, kpis), length)

    shared = np.repeat(draw_families(rng, cells, timing.regime, timing.step_ms), kpis)
    own = draw_families(rng, cells * kpis, timing.regime, timing.step_ms)
    families = np.where(chance(rng, _OWN_FAMILY_SHARE, cells * kpis), own, shared)
    by_series = planned.take(np.repeat(np.arange(cells), kpis))
    activity = draw_activity(rng, clock, by_series, families, spec.held_out)
    activity = correlate(rng, activity.reshape(cells, kpis, length))

    kinds = draw_kinds(rng, (cells, kpis))
    quantities = to_quantities(
        rng,
        kinds.ravel(),
        activity.reshape(cells * kpis, length),
        np.repeat(congestion(rng, activity[:, 0]), kpis, axis=0),
    )
    lower = quantities.lower.reshape(cells, kpis)
    values = add_faults(
        rng,
        quantities.values.reshape(cells, kpis, length),
        lower,
        context_steps=timing.context_steps,
        horizon=timing.horizon,
        day_steps=DAY_MS / timing.step_ms,
    )
    return SyntheticBatch(
        values=values,
        target=values[:, :, timing.history_steps :],
        context_steps=timing.context_steps,
        horizon=timing.horizon,
        start_ms=start_ms,
        step_ms=timing.step_ms,
        kinds=kinds,
        lower=lower,
        upper=quantities.upper.reshape(cells, kpis),
        planned=planned,
    )
