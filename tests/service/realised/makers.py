"""Forecasts and samples for tests of the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kpi.observation import ObservationBatch
from model.predictor import ContextSpan, Forecast, ModelIdentity, Rung
from tests.service.fakes import IDENTITY, NOON_MS

STEP_MS = 900_000
PRB = "RRU.PrbTotDl"
USERS = "DRB.MeanActiveUeDl"


def forecast(
    cell: str = "a",
    *,
    kpis: Sequence[str] = (PRB,),
    begin: int = 0,
    horizon: int = 4,
    levels: tuple[float, ...] = (0.1, 0.5, 0.9),
    step_ms: int = STEP_MS,
    model: ModelIdentity = IDENTITY,
    rung: Rung = Rung.FULL,
    value: float = 10.0,
    values: Any = None,
) -> Forecast:
    """A forecast that begins `begin` steps after noon: the value, plus the level."""
    if values is None:
        values = value + np.zeros((len(kpis), horizon, 1)) + np.array(levels)
    begin_ms = NOON_MS + begin * step_ms
    return Forecast(
        cell=cell,
        kpis=tuple(kpis),
        start_ms=begin_ms,
        step_ms=step_ms,
        levels=levels,
        values=np.asarray(values, dtype=np.float32),
        model=model,
        rung=rung,
        context=ContextSpan(begin_ms - step_ms, begin_ms, 0.0, begin_ms),
    )


def batch(
    samples: Sequence[tuple[str, str, int, float | None]],
    *,
    step_ms: int = STEP_MS,
    suspect: Sequence[bool] | None = None,
) -> ObservationBatch:
    """Samples of (cell, KPI, periods after noon, value)."""
    cells, kpis, periods, values = zip(*samples, strict=True)
    return ObservationBatch.from_lists(
        cells,
        kpis,
        [NOON_MS + period * step_ms for period in periods],
        step_ms,
        values,
        suspect,
        arrival_ms=NOON_MS,
    )
