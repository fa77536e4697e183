"""The regular grid: from period ends as sources stamp them to windows of equal steps in UTC.

A granularity period is named by its index: period i of length p ends at `origin(p) + i * p`. The
origin is the epoch, except for whole weeks, which end on Mondays 00:00 UTC (the epoch was a
Thursday). Daily periods follow the UTC day: a source that counts local days is snapped to the UTC
midnight nearest to its own. Being in UTC, the grid has no clock changes; a local day simply holds
92, 96 or 100 quarter-hours.

Axis legend: n samples, K KPIs, T steps.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kpi.catalogue import Catalogue
from kpi.observation import ObservationBatch
from kpi.window import KpiWindow

DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS
MONDAY_MS = 4 * DAY_MS  # 1970-01-05T00:00Z, the first Monday
LONGEST_PERIOD_MS = 366 * DAY_MS
LATEST_MS = 253_402_300_800_000  # 10000-01-01T00:00Z; what lies beyond is no time stamp
MAX_STEPS = 1 << 20
# A longer window has to be earned: one stamp of 1970 must not cost a cell a million empty steps.
FREE_STEPS = 1 << 14
STEPS_PER_SAMPLE = 64
MOST_CUTS = 16
# Rounding at the source must not turn a full load of 100.3 % into a gap.
LIMIT_SLACK_RATIO = 0.01

log = logging.getLogger(__name__)


def grid_index(
    period_end_ms: ArrayLike, period_ms: ArrayLike, tolerance_ratio: float = 0.5
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Number of the period whose end lies nearest to each stamp; halfway goes to the later one.

    Args:
        period_end_ms: int64 (n,) or a scalar, milliseconds since the epoch.
        period_ms: int64 (n,) or a scalar, lengths of the periods.
        tolerance_ratio: Greatest distance to the grid that is accepted, as a share of the period.

    Returns:
        The indices, int64 (n,), and whether each stamp is on the grid, bool (n,). A period that is
        not positive or longer than a leap year, and a stamp outside the years 1970 to 9999, have
        index 0 and are not.
    """
    end, period = np.broadcast_arrays(
        np.asarray(period_end_ms, dtype=np.int64), np.asarray(period_ms, dtype=np.int64)
    )
    sane = (period > 0) & (period <= LONGEST_PERIOD_MS) & (end >= 0) & (end <= LATEST_MS)
    length = np.where(sane, period, 1)
    index, rest = np.divmod(np.where(sane, end - _origin_ms(length), 0), length)
    upwards = 2 * rest >= length
    distance = np.where(upwards, length - rest, rest)
    return index + upwards, sane & (distance <= tolerance_ratio * length)


def grid_end_ms(index: ArrayLike, period_ms: ArrayLike) -> NDArray[np.int64]:
    """End of period `index`, the inverse of `grid_index`; arguments broadcast."""
    period = np.asarray(period_ms, dtype=np.int64)
    end: NDArray[np.int64] = np.asarray(index, dtype=np.int64) * period + _origin_ms(period)
    return end


def period_end_ms(index: int, period_ms: int) -> int:
    """`grid_end_ms` of a single period."""
    return index * period_ms + (0 if period_ms % WEEK_MS else MONDAY_MS)


def _origin_ms(period_ms: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(period_ms % WEEK_MS == 0, MONDAY_MS, 0)


def difference_counter(values: ArrayLike) -> NDArray[np.float64]:
    """Amount of each period from readings of a counter that only grows until it resets.

    A decrease is a reset: the counter has started from 0 again, so the reading itself is the
    amount. The first reading has no amount, nor has one after a gap, because what was counted
    since the last known reading belongs to an unknown number of periods. Negative readings are
    no counter's and count as missing.

    Args:
        values: (..., T) readings at the ends of the periods, NaN where missing.

    Returns:
        float64 (..., T) amounts, NaN where unknown.
    """
    readings = np.asarray(values, dtype=np.float64)
    readings = np.where(readings >= 0, readings, np.nan)
    before = readings[..., :-1]
    after = readings[..., 1:]
    amounts = np.full(readings.shape, np.nan)
    amounts[..., 1:] = np.where(after >= before, after - before, after)
    amounts[..., 1:][np.isnan(before)] = np.nan
    return amounts


def impossible(batch: ObservationBatch, catalogue: Catalogue) -> NDArray[np.bool_]:
    """Samples that no cell can have: infinite, beyond float32, or outside the KPI's limits.

    Limits are widened by 1 % of their span, since sources round. The upper limit of a cumulative
    KPI is one of the amount in a period and says nothing about the reading.

    Returns:
        bool (n,); False for samples without a value.
    """
    entries = [catalogue.resolve(name) for name in batch.kpis]
    largest = float(np.finfo(np.float32).max)
    lower = np.full(len(entries), -largest)
    upper = np.full(len(entries), largest)
    for position, kpi in enumerate(entries):
        slack = 0.0
        if kpi.lower is not None and kpi.upper is not None:
            slack = LIMIT_SLACK_RATIO * (kpi.upper - kpi.lower)
        if kpi.lower is not None:
            # A natural zero is exact: with slack, the sentinel -1 would pass for a percentage.
            lower[position] = kpi.lower - slack if kpi.lower else kpi.lower
        if kpi.upper is not None and not kpi.cumulative:
            upper[position] = kpi.upper + slack
    outside: NDArray[np.bool_] = (batch.values < lower[batch.kpi_index]) | (
        batch.values > upper[batch.kpi_index]
    )
    return outside


def to_windows(
    batches: Iterable[ObservationBatch],
    *,
    catalogue: Catalogue,
    step_ms: int | None = None,
    time_zone: str = "UTC",
    country: str | None = None,
    keep_suspect: bool = False,
    tolerance_ratio: float = 0.5,
    max_steps: int = MAX_STEPS,
) -> list[KpiWindow]:
    """Lay samples of many batches on the grid, for use without a store.

    The sample of the latest arrival wins, among equal arrivals the later batch. Only one step of a
    cell is used. KPIs that were never reported for a cell at that step are not in its window; gaps
    are NaN; cumulative KPIs become amounts. Samples off the grid or with impossible values are
    left out, and a warning says how many.

    Args:
        batches: Samples in any order.
        catalogue: Says which KPIs are cumulative, what their limits are and how they are spelt.
        step_ms: The step to use; cells without it have no window. By default each cell uses the
            finest step at which it has a value.
        time_zone: IANA name handed on to the windows.
        country: ISO 3166 code handed on to the windows.
        keep_suspect: Use values that their source doubts instead of masking them.
        tolerance_ratio: See `grid_index`.
        max_steps: Bound on T. Of a longer span (two stamps years apart at a step of one second)
            the newest part is kept. A span beyond 16,384 steps where fewer than one step in 64 has
            a sample is cut at its longest holes first, and the parts with most samples are kept: a
            stamp of a clock that is wrong by years must not cost a cell its history.

    Returns:
        One window for each cell, ordered by name, with KPIs ordered by name.
    """
    columns = _Columns(catalogue, step_ms, keep_suspect, tolerance_ratio)
    for batch in batches:
        columns.add(batch)
    if columns.left_out:
        log.warning("samples_left_out=%d reason=off_grid_or_impossible", columns.left_out)
    cell, kpi, period, index, values = columns.joined()
    order = np.argsort(cell, kind="stable")
    bounds = np.searchsorted(cell[order], np.arange(len(columns.cells) + 1))
    names = list(columns.kpis)
    cumulative = np.array([catalogue.resolve(name).cumulative for name in names], dtype=np.bool_)
    windows = []
    far_away = 0
    for name, number in sorted(columns.cells.items()):
        rows = order[bounds[number] : bounds[number + 1]]
        if not len(rows):
            continue
        step = step_ms or _finest(period[rows], values[rows])
        rows = rows[period[rows] == step]
        first, last = _range(index[rows], max_steps)
        kept = (index[rows] >= first) & (index[rows] <= last)
        far_away += len(kept) - int(np.count_nonzero(kept))
        rows = rows[kept]
        present = sorted(np.unique(kpi[rows]).tolist(), key=names.__getitem__)  # K
        line = np.zeros(len(names), dtype=np.intp)
        line[present] = np.arange(len(present))
        dense = np.full((len(present), last - first + 1), np.nan)  # (K, T)
        # Of repeated positions numpy keeps the last, which is the latest arrival.
        dense[line[kpi[rows]], index[rows] - first] = values[rows]
        for position in np.flatnonzero(cumulative[present]):
            dense[position] = difference_counter(dense[position])
        windows.append(
            KpiWindow(
                cell=name,
                kpis=tuple(names[k] for k in present),
                start_ms=period_end_ms(first - 1, step),
                step_ms=step,
                values=dense.astype(np.float32),
                time_zone=time_zone,
                country=country,
            )
        )
    if far_away:
        log.warning("samples_left_out=%d reason=too_far_from_the_others", far_away)
    return windows


def _range(index: NDArray[np.int64], max_steps: int) -> tuple[int, int]:
    """First and last step of a window over these samples that is short or filled enough.

    At its longest hole the side with fewer samples is given up, of equal sides the older. Where
    that does not help soon, there are holes everywhere, and the newest part is kept.
    """
    steps = np.unique(index)
    for _ in range(MOST_CUTS):
        if steps[-1] - steps[0] < max(FREE_STEPS, STEPS_PER_SAMPLE * len(steps)):
            break
        hole = int(np.diff(steps).argmax()) + 1
        steps = steps[:hole] if hole > len(steps) - hole else steps[hole:]
    earned = np.maximum(FREE_STEPS, STEPS_PER_SAMPLE * np.arange(len(steps), 0, -1))
    steps = steps[(steps[-1] - steps < earned).argmax() :]
    last = int(steps[-1])
    return max(int(steps[0]), last - max_steps + 1), last


def _finest(period_ms: NDArray[np.int64], values: NDArray[np.float64]) -> int:
    """Shortest period with a value; a cut-off period that its source doubts must not win."""
    known = period_ms[~np.isnan(values)]
    return int((known if len(known) else period_ms).min())


class _Columns:
    """Samples of many batches under common numbers for cells and KPIs."""

    def __init__(
        self,
        catalogue: Catalogue,
        step_ms: int | None,
        keep_suspect: bool,
        tolerance_ratio: float,
    ) -> None:
        self.cells: dict[str, int] = {}
        self.kpis: dict[str, int] = {}
        self.left_out = 0
        self._catalogue = catalogue
        self._step_ms = step_ms
        self._keep_suspect = keep_suspect
        self._tolerance_ratio = tolerance_ratio
        self._parts: list[tuple[int, tuple[NDArray[np.generic], ...]]] = []

    def add(self, batch: ObservationBatch) -> None:
        if self._step_ms is not None:
            batch = batch.take(batch.period_ms == self._step_ms)
        index, usable = grid_index(batch.period_end_ms, batch.period_ms, self._tolerance_ratio)
        usable &= ~impossible(batch, self._catalogue)
        self.left_out += len(batch) - int(np.count_nonzero(usable))
        values = batch.values
        if not self._keep_suspect:
            values = np.where(batch.suspect, np.nan, values)
        cell = _numbers(self.cells, batch.cells)[batch.cell_index]
        kpi = _numbers(self.kpis, map(self._catalogue.canonical, batch.kpis))[batch.kpi_index]
        columns = (cell, kpi, batch.period_ms, index, values)
        self._parts.append((batch.arrival_ms, tuple(column[usable] for column in columns)))

    def joined(
        self,
    ) -> tuple[
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.float64],
    ]:
        """Cell, KPI, period, grid index and value of all samples, in order of arrival."""
        parts = [columns for _, columns in sorted(self._parts, key=lambda part: part[0])]
        self._parts.clear()
        types = (np.int32, np.int32, np.int64, np.int64, np.float64)
        cell, kpi, period, index, values = (
            np.concatenate([np.empty(0, dtype), *(part[number] for part in parts)])
            for number, dtype in enumerate(types)
        )
        return cell, kpi, period, index, values


def _numbers(table: dict[str, int], names: Iterable[str]) -> NDArray[np.int32]:
    """Number of each name, int32 (names,); names not yet in the table are given the next ones."""
    return np.array([table.setdefault(name, len(table)) for name in names], dtype=np.int32)
