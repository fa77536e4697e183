"""KPIs that the catalogue derives from two counters of the same object and period.

Axis legend: n samples, m of them derived.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from kpi.catalogue import Catalogue
from kpi.observation import ObservationBatch

_Identity = tuple[int, int, int]


def derive(
    batch: ObservationBatch,
    catalogue: Catalogue,
    position: Callable[[str], int | None] | None = None,
) -> ObservationBatch:
    """`batch` with the derived KPIs of the catalogue beside their parts.

    A derived sample stands where both parts have one; it is NaN where a part is missing or the
    denominator is 0, and suspect where a part is. A KPI that the source reports itself is not
    derived. Where a part occurs twice at one identity the last one counts.

    Args:
        batch: Samples.
        catalogue: Its derivations are applied, in their order; one may build on another's parts but
            not on its result.
        position: Gives a KPI's place in `batch.kpis`, None where it is not there; for callers that
            know it without building an index of all names.
    """
    if position is None:
        position = {name: index for index, name in enumerate(batch.kpis)}.get
    rules = []
    for rule in catalogue.derivations:
        top, bottom = position(rule.numerator), position(rule.denominator)
        if top is not None and bottom is not None and position(rule.name) is None:
            rules.append((rule, top, bottom))
    if not rules:
        return batch
    rows_of = _rows(batch, {part for _, top, bottom in rules for part in (top, bottom)})
    pairs: list[tuple[int, int]] = []
    scales: list[float] = []
    kpis: list[int] = []
    for number, (rule, top, bottom) in enumerate(rules, len(batch.kpis)):
        others = rows_of[bottom]
        found = [(row, others[key]) for key, row in rows_of[top].items() if key in others]
        pairs += found
        scales += [rule.scale] * len(found)
        kpis += [number] * len(found)
    above, below = np.array(pairs, dtype=np.intp).reshape(-1, 2).T  # (m,)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = np.array(scales) * batch.values[above] / batch.values[below]  # (m,)
    ratios[~np.isfinite(ratios)] = np.nan
    join = np.concatenate
    return replace(
        batch,
        kpis=(*batch.kpis, *(rule.name for rule, _, _ in rules)),
        cell_index=join([batch.cell_index, batch.cell_index[above]]),
        kpi_index=join([batch.kpi_index, np.array(kpis, dtype=np.int32)]),
        period_end_ms=join([batch.period_end_ms, batch.period_end_ms[above]]),
        period_ms=join([batch.period_ms, batch.period_ms[above]]),
        values=join([batch.values, ratios]),
        suspect=join([batch.suspect, batch.suspect[above] | batch.suspect[below]]),
    )


def _rows(batch: ObservationBatch, kpis: set[int]) -> dict[int, dict[_Identity, int]]:
    """Row of every sample of these KPIs by KPI and (cell, period end, period)."""
    wanted = np.zeros(len(batch.kpis), dtype=np.bool_)
    wanted[list(kpis)] = True
    rows = np.flatnonzero(wanted[batch.kpi_index])
    found: dict[int, dict[_Identity, int]] = {kpi: {} for kpi in kpis}
    for row, kpi, *identity in zip(
        rows.tolist(),
        batch.kpi_index[rows].tolist(),
        batch.cell_index[rows].tolist(),
        batch.period_end_ms[rows].tolist(),
        batch.period_ms[rows].tolist(),
        strict=True,
    ):
        found[kpi][(identity[0], identity[1], identity[2])] = row
    return found
