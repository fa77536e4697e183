"""The held-back period: what tuning never sees, and where tuned and untuned weights are compared.

A recording that goes on for long is cut in time: its end is held back. A network that is recorded
in many short runs, one after the other, is not: cutting each run would compare on the last seconds
of what was learnt from, so its latest runs are held back whole.

Two sets of weights are compared at the same origins. The gain has to exceed a least gain and what
chance would seldom give: its standard error is that of the jackknife over blocks of neighbouring
origins (Kuensch 1989), since the errors of one evening, at all cells, are one event and no
independent proof.

Axis legend: K KPIs, T samples, H steps of the horizon, Q levels.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from kpi.window import KpiWindow
from model.accuracy import Accuracy, measure
from model.lags import DAY_MS
from model.predictor import Predictor
from training.dataset import cut_in_time, earlier_parts, known_at
from training.errors import DataError

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
USUAL_RATIO = 0.15
MOST_RATIO = 1 / 3
LEAST_RUNS = 8
"""Fewer recordings than this are cut in time, however far they lie apart."""

DENSE_MS = 60_000
"""Faster sampling than this knows no days: seconds follow sessions, not the clock."""

BLOCKS = 8
LEAST_BLOCKS = 4
ENOUGH_ORIGINS = 200
MOST_ORIGINS = 600
CHUNK_WINDOWS = 64
SURE_ERRORS: Mapping[int, float] = {4: 2.35, 5: 2.13, 6: 2.02, 7: 1.94, 8: 1.90}
"""Standard errors that a gain has to exceed, by blocks: the 95 % quantile of Student's t, since an
error that is estimated from so few is uncertain itself. Where nothing is gained, about one in
sixteen does."""


@dataclass(frozen=True)
class TimeSplit:
    """What teaches and what is held back.

    Attributes:
        tune: Recordings, or their earlier parts, to learn from.
        held: Recordings with a held-back part; forecasts in it see what lies before.
        ratio: Share of each of `held`, at its end, that is held back; 1 for whole recordings.
        days: Days of the longest recording to learn from.
        held_days: Days that are held back of the recording of which most are.
    """

    tune: list[KpiWindow]
    held: list[KpiWindow]
    ratio: float
    days: float
    held_days: float

    @property
    def whole_runs(self) -> bool:
        """Whether recordings are held back whole."""
        return self.ratio == 1


def split_in_time(
    windows: Sequence[KpiWindow], ratio: float | None = None, *, least_steps: int
) -> TimeSplit:
    """Hold the end back: of each recording, or of their sequence.

    Args:
        windows: Recordings, at least one.
        ratio: Share to hold back; by default 15 %, or more where that is less than a day.
        least_steps: Samples that a typical recording has to keep for learning, where it can.
    """
    if _are_runs(windows):
        ordered = sorted(windows, key=lambda window: (window.end_ms, window.cell))
        samples = np.cumsum([window.steps for window in ordered])
        kept = (1 - (ratio or USUAL_RATIO)) * samples[-1]
        count = int(np.clip(np.searchsorted(samples, kept, side="right"), 1, len(ordered) - 1))
        tune, held = ordered[:count], ordered[count:]
        return TimeSplit(tune, held, 1.0, _days(tune), _days(held))
    share = ratio or _usual_ratio(windows, least_steps)
    tune = earlier_parts(windows, share)
    ends = [replace(w, values=w.values[:, cut_in_time(w, share) :]) for w in windows]
    return TimeSplit(tune, list(windows), share, _days(tune), _days(ends))


def _are_runs(windows: Sequence[KpiWindow]) -> bool:
    """Whether these are many recordings, most of them short beside the time they span together."""
    span = max(w.end_ms for w in windows) - min(w.start_ms for w in windows)
    typical = float(np.median([w.steps * w.step_ms for w in windows]))
    return len(windows) >= LEAST_RUNS and typical < span / 4


def _usual_ratio(windows: Sequence[KpiWindow], least_steps: int) -> float:
    if not has_days(windows):
        return USUAL_RATIO
    a_day = DAY_MS / float(np.median([w.steps * w.step_ms for w in windows]))
    spare = 1 - (least_steps + 0.5) / float(np.median([w.steps for w in windows]))
    return max(0.01, min(MOST_RATIO, max(USUAL_RATIO, a_day), spare))


def has_days(windows: Sequence[KpiWindow]) -> bool:
    """Whether days show in the sampling."""
    return any(w.step_ms >= DENSE_MS for w in windows)


def _days(windows: Sequence[KpiWindow]) -> float:
    return max(w.steps * w.step_ms for w in windows) / DAY_MS


@dataclass(frozen=True)
class Scores:
    """Sums of one predictor at all origins.

    Attributes:
        blocks: By block of time and KPI.
    """

    blocks: Sequence[Mapping[str, Accuracy]]

    @property
    def wql(self) -> float:
        """Mean over the KPIs of their weighted quantile loss, NaN where all targets are zero."""
        return _mean_wql(self.blocks)

    def totals(self) -> dict[str, Accuracy]:
        """By KPI, over all blocks."""
        return _totals(self.blocks)

    @property
    def targets(self) -> int:
        """Targets that were forecast."""
        return sum(part.targets for block in self.blocks for part in block.values())

    def card(self) -> dict[str, Any]:
        """Plain values for a checkpoint's card; a score that is no number is None."""
        by_kpi = {
            name: {"wql": _plain(total.wql), "cov80": _plain(total.coverage)}
            for name, total in sorted(self.totals().items())
        }
        return {"wql": _plain(self.wql), "targets": self.targets, "kpis": by_kpi}


@dataclass(frozen=True)
class Comparison:
    """How much better one set of weights is than another at the same origins.

    Attributes:
        gain: Share of the WQL that it saves, negative where it is worse; NaN where unknown.
        error: Standard error of the gain; infinite where there are too few blocks to tell.
        least_gain: What a gain has to reach, however sure it is.
        blocks: Blocks of origins that the error was estimated from.
    """

    gain: float
    error: float
    least_gain: float
    blocks: int = BLOCKS

    @property
    def needed(self) -> float:
        """The gain that would be large enough and sure enough."""
        return max(self.least_gain, SURE_ERRORS[self.blocks] * self.error)

    @property
    def is_better(self) -> bool:
        """Whether it is."""
        return self.gain > self.needed


class HeldBack:
    """The origins of the held-back period, at which predictors are scored.

    Attributes:
        split: What is held back.
        horizon: Steps that are forecast.
        history_steps: Most samples before an origin.
        cuts: Recordings and origins in them, in order of time.
    """

    def __init__(self, split: TimeSplit, horizon: int, history_steps: int, least: int) -> None:
        """Choose the origins.

        Args:
            split: What is held back.
            horizon: Steps to forecast; less where the held-back part is short.
            history_steps: Most samples before an origin.
            least: Fewest samples before an origin.

        Raises:
            DataError: No recording holds an origin and what comes after it.
        """
        self.split = split
        self.history_steps = history_steps
        room = max(w.steps - _first_origin(w, split, least) for w in split.held)
        self.horizon = max(1, min(horizon, room // 2))
        cuts = [
            (window, origin)
            for window in split.held
            for origin in self._origins(window, _first_origin(window, split, least))
        ]
        if not cuts:
            longest = max(w.steps for w in split.held)
            raise DataError(
                f"expected a recording with {least} samples before its last {split.ratio:.0%} and "
                f"a few in it, to compare forecasts with what came; the longest has {longest}"
            )
        cuts.sort(key=lambda cut: (cut[0].start_ms + cut[1] * cut[0].step_ms, cut[0].cell))
        if len(cuts) > MOST_ORIGINS:
            picks = np.linspace(0, len(cuts) - 1, MOST_ORIGINS).round().astype(int)
            cuts = [cuts[pick] for pick in picks]
        self.cuts = cuts

    def _origins(self, window: KpiWindow, first: int) -> list[int]:
        """Origins a horizon apart, or closer where that gives only a few."""
        last = window.steps - self.horizon
        enough = max(BLOCKS, ENOUGH_ORIGINS // len(self.split.held))
        stride = max(1, min(self.horizon, (last - first) // enough))
        return [
            origin
            for origin in range(first, last + 1, stride)
            if not np.isnan(window.values[:, :origin][:, -self.history_steps :]).all()
            and not np.isnan(window.values[:, origin : origin + self.horizon]).all()
        ]

    def score(
        self, predictor: Predictor, on_progress: Callable[[int, int], None] = lambda *_: None
    ) -> Scores:
        """The predictor's sums, block by block of time.

        Args:
            predictor: Forecasts from every origin.
            on_progress: Called with the origins done and in all.
        """
        blocks = np.array_split(np.arange(len(self.cuts)), min(BLOCKS, len(self.cuts)))
        found = []
        for block in blocks:
            found.append(self._block(predictor, block.tolist()))
            on_progress(int(block[-1]) + 1, len(self.cuts))
        return Scores(found)

    def _block(self, predictor: Predictor, places: Sequence[int]) -> dict[str, Accuracy]:
        found: dict[str, list[Accuracy]] = defaultdict(list)
        for begin in range(0, len(places), CHUNK_WINDOWS):
            chunk = [self.cuts[place] for place in places[begin : begin + CHUNK_WINDOWS]]
            for (window, origin), forecast in zip(
                chunk,
                predictor.predict(
                    [known_at(*cut, self.history_steps) for cut in chunk], self.horizon, LEVELS
                ),
                strict=True,
            ):
                future = window.values[:, origin : origin + self.horizon]  # (K, H)
                for row, kpi in enumerate(window.kpis):
                    part = measure(forecast.values[row][None], future[row][None], LEVELS)
                    found[kpi].append(part)
        return {kpi: reduce(add, parts) for kpi, parts in found.items()}


def _first_origin(window: KpiWindow, split: TimeSplit, least: int) -> int:
    return max(least, cut_in_time(window, split.ratio))


def compare(before: Scores, after: Scores, least_gain: float) -> Comparison:
    """What `after` gains on `before`, with the jackknife's error over blocks of time.

    A predictor that leaves targets out, because it has no number for them, gains nothing.
    """
    if after.targets < before.targets:
        return Comparison(-math.inf, math.inf, least_gain)
    gain = _gain(before.blocks, after.blocks)
    count = len(before.blocks)
    if count < LEAST_BLOCKS or not math.isfinite(gain):
        return Comparison(gain, math.inf, least_gain)
    rest = np.array(
        [
            _gain(_without(before.blocks, left), _without(after.blocks, left))
            for left in range(count)
        ]
    )
    rest = rest[np.isfinite(rest)]
    if len(rest) < LEAST_BLOCKS:
        return Comparison(gain, math.inf, least_gain)
    error = math.sqrt((len(rest) - 1) / len(rest) * float(((rest - rest.mean()) ** 2).sum()))
    return Comparison(gain, error, least_gain, len(rest))


def _gain(
    before: Sequence[Mapping[str, Accuracy]], after: Sequence[Mapping[str, Accuracy]]
) -> float:
    zero = _mean_wql(before)
    return 1 - _mean_wql(after) / zero if zero > 0 else math.nan


def _without(
    blocks: Sequence[Mapping[str, Accuracy]], left: int
) -> Sequence[Mapping[str, Accuracy]]:
    return [*blocks[:left], *blocks[left + 1 :]]


def _mean_wql(blocks: Sequence[Mapping[str, Accuracy]]) -> float:
    """Mean over the KPIs of the weighted quantile loss of all blocks together."""
    found = [total.wql for total in _totals(blocks).values() if not math.isnan(total.wql)]
    return float(np.mean(found)) if found else math.nan


def _totals(blocks: Sequence[Mapping[str, Accuracy]]) -> dict[str, Accuracy]:
    parts: dict[str, list[Accuracy]] = defaultdict(list)
    for block in blocks:
        for kpi, part in block.items():
            parts[kpi].append(part)
    return {kpi: reduce(add, found) for kpi, found in parts.items()}


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None
