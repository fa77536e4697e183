"""What the gallery shows: synthetic cells of one step and span, and real cells cut to match.

Axes: N series, K KPIs of a cell, L samples shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from kpi.catalogue import KpiKind
from kpi.window import KpiWindow
from training.gallery.statistics import Series
from training.synthetic import BatchSpec, SyntheticBatch, sample_batch
from training.synthetic.family import Family, draw_activity
from training.synthetic.planned import draw_planned
from training.synthetic.timing import (
    DAY_MS,
    MINUTE_MS,
    TRAINING_STEPS_MS,
    Clock,
    Regime,
    draw_starts,
)

SPAN_MS = {
    Regime.HOUR: 28 * DAY_MS,
    Regime.MINUTE: 2 * DAY_MS,
    Regime.SECOND: 5 * MINUTE_MS,
    Regime.DAY: 364 * DAY_MS,
}
"""How much of a cell is shown: enough for its slowest season to come twice, where it has one."""

LEAST_STEPS, MOST_STEPS = 64, 2880
PIECES_A_SERIES = 4
MOST_REAL_SERIES = 1_000
"""Pieces of recorded cells that the figures of a section are computed from."""
_MOST_MISSING = 0.5
MOST_KPIS = 4
_SERIES_A_BATCH = 48
_MOST_VAIN_TRIES = 2000

Ticker = Callable[[int], None]


@dataclass(frozen=True)
class Span:
    """What all cells of a section share.

    Attributes:
        regime: How densely they are sampled.
        step_ms: Sampling step.
        steps: L, samples of each.
    """

    regime: Regime
    step_ms: int
    steps: int


@dataclass(frozen=True)
class SyntheticCells:
    """Synthetic cells as training sees them, faults included.

    Attributes:
        series: Their KPIs one below the other, N of them, cut to the span.
        kinds: (N,) what each of them is.
        groups: The rows of cells that have several KPIs.
    """

    series: Series
    kinds: list[KpiKind]
    groups: list[list[int]]


@dataclass(frozen=True)
class RealCells:
    """Pieces of recorded cells, cut to a span.

    Attributes:
        series: N pieces of one KPI each.
        kpis: (N,) name of each piece's KPI.
        groups: The rows that are KPIs of one cell at one time.
        left_out: Recorded cells of the section of which nothing is shown, by the reason.
    """

    series: Series
    kpis: list[str]
    groups: list[list[int]]
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The KPIs, each once, in order of first sight."""
        return list(dict.fromkeys(self.kpis))


def regime_of(step_ms: int) -> Regime:
    """The regime whose steps a step belongs to: the densest if it is finer than all."""
    coarse_first = sorted(TRAINING_STEPS_MS, key=lambda r: -min(TRAINING_STEPS_MS[r]))
    for regime in coarse_first:
        if step_ms >= min(TRAINING_STEPS_MS[regime]):
            return regime
    return coarse_first[-1]


def choose_span(regime: Regime, windows: Sequence[KpiWindow]) -> Span:
    """Step and length of a section: those of most of the windows, else the regime's usual ones.

    Windows of a step that training never draws are shown beside its nearest.
    """
    own = [window for window in windows if regime_of(window.step_ms) is regime]
    trained = TRAINING_STEPS_MS[regime]
    if own:
        common = Counter(window.step_ms for window in own).most_common(1)[0][0]
        step_ms = min(trained, key=lambda step: abs(np.log(step / common)))
    else:
        step_ms = max(trained, key=lambda step: trained[step])
    steps = int(np.clip(SPAN_MS[regime] // step_ms, LEAST_STEPS, MOST_STEPS))
    longest = max((window.steps for window in own), default=steps)
    return Span(regime, step_ms, max(LEAST_STEPS, min(steps, longest)))


def draw_cells(
    rng: np.random.Generator, span: Span, series: int, tick: Ticker = lambda _: None
) -> SyntheticCells:
    """At least `series` KPIs of synthetic cells of one span, of kinds that cannot be negative.

    Batches of other steps or shorter lengths are drawn and left, so what is shown is what
    training sees, not a second generator.

    Args:
        rng: Source of randomness.
        span: Step and length.
        series: How many KPIs.
        tick: Takes how many are there so far.

    Raises:
        RuntimeError: The generator has stopped drawing this step.
    """
    spec = BatchSpec(
        series=_SERIES_A_BATCH,
        max_kpis=MOST_KPIS,
        max_context_steps=2 * span.steps,
        max_history_steps=2 * span.steps,
    )
    kinds_in_order = list(KpiKind)
    values: list[NDArray[np.float32]] = []
    starts: list[int] = []
    kinds: list[KpiKind] = []
    groups: list[list[int]] = []
    probe = replace(spec, series=1)
    vain_tries = 0
    while len(values) < series and vain_tries < _MOST_VAIN_TRIES:
        # Step and length do not depend on how many series a batch has, so a batch of one tells
        # cheaply whether the same seed is of use.
        seed = int(rng.integers(1 << 62))
        vain_tries += 1
        if not _fits(sample_batch(np.random.default_rng(seed), probe), span):
            continue
        batch = sample_batch(np.random.default_rng(seed), spec)
        if not _fits(batch, span):
            continue
        vain_tries = 0
        skipped = batch.values.shape[-1] - span.steps
        for cell in range(len(batch.values)):
            rows = []
            for kpi in np.flatnonzero(batch.lower[cell] == 0):
                shown = batch.values[cell, kpi, skipped:]
                if np.isnan(shown).mean() > _MOST_MISSING:
                    continue
                rows.append(len(values))
                values.append(shown)
                starts.append(int(batch.start_ms[cell]) + skipped * batch.step_ms)
                kinds.append(kinds_in_order[int(batch.kinds[cell, kpi])])
            if len(rows) > 1:
                groups.append(rows)
        tick(min(len(values), series))
    if len(values) < series:
        raise RuntimeError(
            f"expected {series} synthetic series of {span.step_ms} ms, the generator gave "
            f"{len(values)}"
        )
    return SyntheticCells(
        Series(np.stack(values), np.array(starts, dtype=np.int64), span.step_ms), kinds, groups
    )


def _fits(batch: SyntheticBatch, span: Span) -> bool:
    return batch.step_ms == span.step_ms and batch.values.shape[-1] >= span.steps


def draw_family(
    rng: np.random.Generator, span: Span, family: Family, rows: int
) -> NDArray[np.float32]:
    """(rows, L) activity of one family, before it becomes a KPI and before faults."""
    starts = draw_starts(rng, rows, span.step_ms)
    planned = draw_planned(rng, span.regime, span.step_ms, starts, span.steps)
    clock = Clock(span.regime, span.step_ms, starts, span.steps)
    return draw_activity(rng, clock, planned, np.full(rows, family.value), False)


def cut_real(rng: np.random.Generator, windows: Sequence[KpiWindow], span: Span) -> RealCells:
    """Pieces of the windows of the span's regime, in random order of cells.

    Every series gives up to `PIECES_A_SERIES` pieces, evenly spread over its length, until there
    are `MOST_REAL_SERIES`. Pieces that are mostly missing are left out. Starts are on the cell's
    own clock, which days go by.
    """
    values: list[NDArray[np.float32]] = []
    starts: list[int] = []
    kpis: list[str] = []
    groups: list[list[int]] = []
    left_out: Counter[str] = Counter()
    own, step_ms = _fitting(windows, span, left_out)
    for index in rng.permutation(len(own)):
        window = own[index]
        if len(values) >= MOST_REAL_SERIES:
            left_out["beyond as many as a page shows"] += 1
            continue
        pieces, before = min(PIECES_A_SERIES, window.steps // span.steps), len(values)
        for begin in np.linspace(0, window.steps - span.steps, pieces).astype(int):
            start_ms = window.start_ms + int(begin) * window.step_ms
            rows = []
            for kpi, name in enumerate(window.kpis):
                piece = window.values[kpi, begin : begin + span.steps]
                if np.isnan(piece).mean() > _MOST_MISSING:
                    continue
                rows.append(len(values))
                values.append(piece)
                starts.append(start_ms + _offset_ms(start_ms, window.time_zone))
                kpis.append(name)
            if len(rows) > 1:
                groups.append(rows)
        if len(values) == before:
            left_out["mostly without values"] += 1
    shape = (0, span.steps)
    return RealCells(
        Series(
            np.stack(values) if values else np.empty(shape, dtype=np.float32),
            np.array(starts, dtype=np.int64),
            step_ms,
        ),
        kpis,
        groups,
        left_out,
    )


def _fitting(
    windows: Sequence[KpiWindow], span: Span, left_out: Counter[str]
) -> tuple[list[KpiWindow], int]:
    """The windows long enough for a span and of one step, and that step; the others are counted.

    The step is the span's where any window has it, else that of most.
    """
    own = [window for window in windows if regime_of(window.step_ms) is span.regime]
    steps = Counter(window.step_ms for window in own if window.steps >= span.steps)
    step_ms = max(steps, key=lambda step: (step == span.step_ms, steps[step]), default=span.step_ms)
    fitting = []
    for window in own:
        if window.steps < span.steps:
            left_out[f"shorter than {span.steps:,} samples"] += 1
        elif window.step_ms != step_ms:
            left_out["of another step"] += 1
        else:
            fitting.append(window)
    return fitting, step_ms


def _offset_ms(at_ms: int, zone: str) -> int:
    """How far a cell's clock is ahead of UTC at a time."""
    offset = datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(ZoneInfo(zone)).utcoffset()
    return round(offset.total_seconds() * 1000) if offset else 0
