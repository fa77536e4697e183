"""The window of samples that a forecast starts from.

Axis legend: K KPIs, T samples. Sample i covers [start + i * step, start + (i + 1) * step), in UTC;
only calendar features see local time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PlannedEvent:
    """Something known beforehand (a match, a concert, a maintenance), as [start, end) in UTC ms."""

    start_ms: int
    end_ms: int
    kind: str = "planned"


@dataclass(frozen=True, slots=True)
class KpiWindow:
    """Regular samples of one cell up to the origin of a forecast.

    The window may be longer than a model's context: the model takes its context from the end and
    finds the samples one day and one week earlier in what lies before it.

    Attributes:
        cell: Distinguished name of the cell, opaque.
        kpis: Catalogue names, K of them.
        start_ms: Begin of sample 0, milliseconds since 1970-01-01T00:00Z.
        step_ms: Length of a sample in milliseconds.
        values: float32 (K, T), NaN where nothing is known.
        time_zone: IANA name; the calendar features follow its clock.
        country: ISO 3166 code whose public holidays hold, with a subdivision as in `ES-CT`; None
            where no holidays are to be counted.
        events: Planned events, past and future.
    """

    cell: str
    kpis: tuple[str, ...]
    start_ms: int
    step_ms: int
    values: NDArray[np.float32]
    time_zone: str = "UTC"
    events: tuple[PlannedEvent, ...] = ()
    country: str | None = None

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[0] != len(self.kpis):
            raise ValueError(
                f"expected values of shape (K, T) with K = {len(self.kpis)} KPIs of cell "
                f"{self.cell!r}, got {self.values.shape}"
            )
        if self.step_ms <= 0:
            raise ValueError(f"expected a positive step, got {self.step_ms} ms")

    @property
    def steps(self) -> int:
        """Number of samples T."""
        return int(self.values.shape[1])

    @property
    def end_ms(self) -> int:
        """End of the last sample, which is where a forecast starts."""
        return self.start_ms + self.steps * self.step_ms

    @property
    def step_seconds(self) -> float:
        """Length of a sample in seconds."""
        return self.step_ms / 1000

    @property
    def start(self) -> datetime:
        """Begin of sample 0 as an aware UTC date."""
        return datetime.fromtimestamp(self.start_ms / 1000, UTC)

    @property
    def missing_ratio(self) -> float:
        """Share of samples without a value, 0 to 1; 1 for an empty window."""
        return float(np.isnan(self.values).mean()) if self.values.size else 1.0
