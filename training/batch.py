"""A training batch: what the model may see, and the future it must tell.

Axis legend: B windows, K KPIs, T samples of history, H future samples (whole patches).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.calendar import calendar_of_windows
from model.config import ForecasterConfig
from model.planned import planned_width
from model.tokens import Series, context_patches


@dataclass(frozen=True)
class TrainingBatch:
    """Series of one sampling step and their future.

    Attributes:
        series: Histories, as the forecaster takes them.
        target: float32 (B, K, H) in KPI values, NaN where missing.
    """

    series: Series
    target: Tensor

    @property
    def windows(self) -> int:
        """Number of series, B times K."""
        return self.target.shape[0] * self.target.shape[1]

    def slice(self, first: int, last: int) -> TrainingBatch:
        """The windows from `first` to before `last`."""
        series = self.series
        return TrainingBatch(
            Series(
                step_ms=series.step_ms,
                **{
                    entry.name: getattr(series, entry.name)[first:last]
                    for entry in fields(Series)
                    if entry.name != "step_ms"
                },
            ),
            self.target[first:last],
        )


def make_batch(
    history: NDArray[np.float32],
    target: NDArray[np.float32],
    config: ForecasterConfig,
    *,
    origin_ms: NDArray[np.int64],
    step_ms: int,
    kinds: NDArray[np.int64],
    lower: NDArray[np.float32],
    upper: NDArray[np.float32],
    time_zones: Sequence[str] | None = None,
    planned: NDArray[np.float32] | None = None,
) -> TrainingBatch:
    """Arrays as a batch.

    Args:
        history: (B, K, T), NaN where missing.
        target: (B, K, H), H a whole number of patches.
        config: Shape of the forecaster.
        origin_ms: (B,) end of the history in UTC milliseconds.
        step_ms: Length of a sample.
        kinds: (B, K) index of the KPI's kind.
        lower: (B, K) least possible value or -inf.
        upper: (B, K) greatest possible value or inf.
        time_zones: Clock of each window, UTC by default.
        planned: (B, N, W) events and holidays of the context patches and then the future ones,
            none by default.
    """
    windows, kpis, steps = history.shape
    patch_ms = config.patch * step_ms
    patches = context_patches(config, steps)
    zones = time_zones or ["UTC"] * windows
    future_patches = target.shape[-1] // config.patch
    calendar = calendar_of_windows(
        list(zip(origin_ms.tolist(), zones, strict=True)),
        (-patches, future_patches),
        patch_ms,
        step_ms,
    )
    if planned is None:
        shape = (windows, patches + future_patches, planned_width(config.patch))
        planned = np.zeros(shape, dtype=np.float32)
    series = Series(
        values=torch.from_numpy(np.ascontiguousarray(history)),
        step_ms=step_ms,
        calendar=torch.from_numpy(calendar),
        planned=torch.from_numpy(planned),
        kinds=torch.from_numpy(kinds),
        lower=torch.from_numpy(lower),
        upper=torch.from_numpy(upper),
        present=torch.ones(windows, kpis, dtype=torch.bool),
    )
    return TrainingBatch(series, torch.from_numpy(np.ascontiguousarray(target)))
