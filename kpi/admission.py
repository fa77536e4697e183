"""Which samples of a batch are sound enough to be stored, whatever the store holds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpi.catalogue import Catalogue
from kpi.grid import grid_index, impossible
from kpi.limits import Rejection, StoreLimits
from kpi.observation import ObservationBatch


def admit(
    batch: ObservationBatch, limits: StoreLimits, catalogue: Catalogue, *, now_ms: int | None
) -> tuple[NDArray[np.int64], NDArray[np.bool_], list[Rejection]]:
    """Check the grid, the sender's clock and the values.

    Args:
        batch: n samples.
        limits: Tolerances.
        catalogue: Limits of the KPIs' values.
        now_ms: Time of the merge. Periods that end long after it and after the arrival of the batch
            are refused: an arrival may be a file's time, which an archive can have reset. None
            checks no clock.

    Returns:
        Grid index of each sample, int64 (n,), which are sound, bool (n,), and why others are not.
    """
    index, accepted = grid_index(batch.period_end_ms, batch.period_ms, limits.snap_tolerance_ratio)
    rejected: list[Rejection] = []

    def reject(mask: NDArray[np.bool_], reason: str) -> None:
        nonlocal accepted
        rejected.append(rejection(batch, mask, reason))
        accepted = accepted & ~mask

    if not accepted.all():
        reject(
            ~accepted,
            "expected a period of 1 ms to 366 days that ends in the years 1970 to 9999, at most "
            f"{limits.snap_tolerance_ratio} periods off the grid of its length in UTC",
        )
    if now_ms is not None:
        horizon_ms = max(now_ms, batch.arrival_ms) + round(limits.max_future_seconds * 1000)
        ahead = accepted & (batch.period_end_ms > horizon_ms)
        if ahead.any():
            reject(
                ahead,
                f"the period ends more than max_future_seconds={limits.max_future_seconds:g} "
                "after the batch arrived; check the sender's clock and its unit of time",
            )
    outside = accepted & impossible(batch, catalogue)
    if outside.any():
        first = int(outside.argmax())
        kpi = catalogue.resolve(batch.kpis[batch.kpi_index[first]])
        reject(
            outside,
            "expected finite values within the limits of the KPI in the catalogue, got "
            f"{batch.values[first]:g} for {kpi.name} ({kpi.lower} to {kpi.upper})",
        )
    return index, accepted, rejected


def rejection(batch: ObservationBatch, mask: NDArray[np.bool_], reason: str) -> Rejection:
    """What to say of the samples in `mask`, at least one."""
    first = int(mask.argmax())
    return Rejection(batch.cells[batch.cell_index[first]], reason, int(np.count_nonzero(mask)))
