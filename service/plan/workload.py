"""The made-up cells that are forecast to measure a node, as windows and as the body of a request.

Axis legend: K KPIs, T samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import orjson

from kpi.catalogue import Catalogue
from kpi.window import KpiWindow
from service.answers import seconds
from service.errors import ServiceError
from service.timestamps import to_rfc3339

DAY_MS = 86_400_000
_START_MS = 20_000 * DAY_MS
_CELL = "ManagedElement=GNB-1,GNBDUFunction=1,NRCellDU={}"
_DECIMALS = 2


class WorkloadError(ServiceError):
    """Cells that cannot be made up; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What each cell looks like, and what is asked of it.

    Attributes:
        kpis: KPIs of a cell, K.
        history_steps: Samples of each KPI, T; the model takes its context from their end.
        step_ms: Length of a sample.
        horizon: Steps to forecast.
        levels: Quantile levels.

    Raises:
        WorkloadError: A number is not above 0.
    """

    kpis: int
    history_steps: int
    step_ms: int
    horizon: int
    levels: tuple[float, ...]

    def __post_init__(self) -> None:
        for name in ("kpis", "history_steps", "step_ms", "horizon"):
            value = getattr(self, name)
            if value < 1:
                raise WorkloadError(f"expected {name.replace('_', ' ')} of at least 1, got {value}")

    def windows(self, cells: int, catalogue: Catalogue) -> list[KpiWindow]:
        """So many cells with a noisy daily rhythm and a sample in fifty missing.

        Raises:
            WorkloadError: The catalogue has fewer KPIs.
        """
        names = tuple(catalogue.kpis)[: self.kpis]
        if len(names) < self.kpis:
            raise WorkloadError(
                f"expected at most the catalogue's {len(names)} KPIs, got {self.kpis}"
            )
        phase = np.arange(self.history_steps) * (2 * np.pi * self.step_ms / DAY_MS)  # (T,)
        windows = []
        for cell in range(cells):
            random = np.random.default_rng(cell)
            noise = random.normal(0, 6, (self.kpis, self.history_steps))  # (K, T)
            values = np.clip(50 + 30 * np.sin(phase + cell) + noise, 0, 100).round(_DECIMALS)
            values[random.random(values.shape) < 0.02] = np.nan
            windows.append(
                KpiWindow(
                    _CELL.format(cell + 1),
                    names,
                    _START_MS,
                    self.step_ms,
                    values.astype(np.float32),
                )
            )
        return windows

    def body(self, windows: Sequence[KpiWindow]) -> bytes:
        """A `POST /v1/forecast` in JSON that asks for these windows."""
        return orjson.dumps(
            {
                "series": [
                    {
                        "cell": window.cell,
                        "start": to_rfc3339(window.start_ms),
                        "step_seconds": seconds(window.step_ms),
                        "kpis": dict(zip(window.kpis, window.values, strict=True)),
                    }
                    for window in windows
                ],
                "horizon": self.horizon,
                "quantiles": self.levels,
            },
            option=orjson.OPT_SERIALIZE_NUMPY,
        )
