"""What is forecast: made-up cells, one or several KPIs each, one or many at once.

Axis legend: K KPIs, T samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kpi.window import KpiWindow

CONTEXT_STEPS = 672
HORIZON = 24
LEVELS = (0.1, 0.5, 0.9)
BATCHES = (1, 32)
KPI_COUNTS = (1, 4)

_KPIS = ("RRU.PrbTotDl", "DRB.MeanActiveUeDl", "RRU.PrbTotUl", "DRB.UEThpDl")
_STEP_MS = 900_000
_DAY_MS = 86_400_000
_START_MS = 20_000 * _DAY_MS


@dataclass(frozen=True)
class Shape:
    """Size of a call.

    Attributes:
        windows: Cells that are forecast at once.
        kpis: KPIs of each.
    """

    windows: int
    kpis: int


SHAPES = tuple(Shape(windows, kpis) for windows in BATCHES for kpis in KPI_COUNTS)


def draw_windows(shape: Shape, steps: int = CONTEXT_STEPS) -> list[KpiWindow]:
    """Quarter hours with a daily rhythm and noise, the same at every call."""
    random = np.random.default_rng([shape.windows, shape.kpis])
    angle = 2 * np.pi * _STEP_MS / _DAY_MS * np.arange(steps)
    size = (shape.windows, shape.kpis, steps)
    phases = random.uniform(0, 2 * np.pi, (shape.windows, shape.kpis, 1))
    load = 45 + 30 * np.sin(angle + phases) + random.normal(0, 6, size)
    return [
        KpiWindow(
            cell=f"cell {number}",
            kpis=_KPIS[: shape.kpis],
            start_ms=_START_MS,
            step_ms=_STEP_MS,
            values=values,
        )
        for number, values in enumerate(load.clip(0, 100).astype(np.float32))
    ]
