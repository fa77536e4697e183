"""What a caller hands over: regular samples of a cell.

Axis legend: T samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.floating[Any]] | NDArray[np.integer[Any]] | Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Event:
    """Something known beforehand, past or future; `start` and `end` are aware dates."""

    start: datetime
    end: datetime
    kind: str = "planned"

    def __post_init__(self) -> None:
        _check_aware(self.start)
        _check_aware(self.end)


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Regular samples of one cell.

    Attributes:
        cell: The cell's distinguished name.
        start: Begin of the first sample, an aware date.
        step_seconds: Length of a sample.
        kpis: Samples (T) by KPI; NaN or None where nothing is known.
        time_zone: IANA zone that the cell's daily life follows; None: the deployment's.
        country: Country whose public holidays hold, as in ES or ES-CT; None: the deployment's.
        events: Planned events; inputs of forecasts, not kept with observations.
    """

    cell: str
    start: datetime
    step_seconds: float
    kpis: Mapping[str, Samples]
    time_zone: str | None = None
    country: str | None = None
    events: Sequence[Event] = ()

    def __post_init__(self) -> None:
        _check_aware(self.start)


def series_body(series: Series) -> dict[str, Any]:
    """The series as the service reads it.

    Raises:
        ValueError: Samples are infinite, or not in one dimension.
    """
    body: dict[str, Any] = {
        "cell": series.cell,
        "start": series.start.isoformat(),
        "step_seconds": series.step_seconds,
        "kpis": {name: _numbers(name, values) for name, values in series.kpis.items()},
    }
    if series.time_zone is not None:
        body["time_zone"] = series.time_zone
    if series.country is not None:
        body["country"] = series.country
    if series.events:
        body["events"] = [
            {"start": each.start.isoformat(), "end": each.end.isoformat(), "kind": each.kind}
            for each in series.events
        ]
    return body


def _numbers(name: str, values: Samples) -> list[Any]:
    samples = np.asarray(values, dtype=np.float64)  # None becomes NaN
    if samples.ndim != 1 or np.isinf(samples).any():
        raise ValueError(
            f"expected finite samples of {name!r} in one dimension, NaN where nothing is known, "
            f"got shape {samples.shape} and {int(np.isinf(samples).sum())} infinite ones"
        )
    unknown = np.isnan(samples)
    if not unknown.any():
        return list(samples.tolist())
    boxed = samples.astype(object)
    boxed[unknown] = None
    return list(boxed.tolist())


def _check_aware(moment: datetime) -> None:
    if moment.tzinfo is None:
        raise ValueError(f"expected a date with a time zone, got {moment!r}; add tzinfo=UTC")
