"""Where training batches come from: synthetic cells, the user's own windows, or both.

A source is a pure function of (seed, step), so a run that was killed goes on exactly where it was.

Axis legend: B windows, K KPIs, T samples of history, H future samples.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kpi.catalogue import Catalogue
from kpi.window import KpiWindow
from model.config import ForecasterConfig
from model.lags import DAY_MS
from model.planned import holiday_inputs, is_planned_step, planned_inputs
from model.tokens import context_patches
from training.batch import TrainingBatch, make_batch
from training.dataset import cut_in_time
from training.errors import DataError
from training.synthetic import BatchSpec, SyntheticBatch, sample_batch

MIN_CONTEXT_PATCHES = 2
DRAWS_A_WINDOW = 8


class Source(Protocol):
    """Anything that gives a batch for a generator of random numbers."""

    def batch(self, rng: np.random.Generator) -> TrainingBatch:
        """The batch that `rng` leads to."""


@dataclass(frozen=True)
class SyntheticSource:
    """Synthetic cells made as they are needed, never stored."""

    config: ForecasterConfig
    spec: BatchSpec

    def batch(self, rng: np.random.Generator) -> TrainingBatch:
        """A batch of one sampling step, context length and horizon."""
        drawn = sample_batch(rng, self.spec)
        steps = drawn.values.shape[-1] - drawn.horizon
        return make_batch(
            drawn.values[..., :steps],
            drawn.target,
            self.config,
            origin_ms=drawn.start_ms + steps * drawn.step_ms,
            step_ms=drawn.step_ms,
            kinds=drawn.kinds,
            lower=drawn.lower,
            upper=drawn.upper,
            planned=self._planned(drawn, steps),
        )

    def _planned(self, drawn: SyntheticBatch, steps: int) -> NDArray[np.float32] | None:
        """Planned inputs (B, N, W) of the patches around the origin, after `steps` samples."""
        if not is_planned_step(drawn.step_ms):
            return None
        patch = self.config.patch
        first = steps - context_patches(self.config, steps) * patch
        length = drawn.values.shape[-1]
        samples = np.arange(first, length)
        rows = []
        for cell, start_ms in enumerate(drawn.start_ms):
            days = ((start_ms + samples * drawn.step_ms) // DAY_MS).reshape(-1, patch)
            told = partial(drawn.planned.holiday_on, cell)
            events = drawn.planned.told_events[cell, first:].reshape(-1, patch)
            rows.append(np.concatenate([events, holiday_inputs(days, told)], axis=1))
        return np.stack(rows)


@dataclass(frozen=True)
class MixedSource:
    """Draws from several sources with given shares."""

    sources: Sequence[Source]
    shares: Sequence[float]

    def batch(self, rng: np.random.Generator) -> TrainingBatch:
        """A batch of one of the sources."""
        return self.sources[int(rng.choice(len(self.sources), p=self.shares))].batch(rng)


class WindowSource:
    """Random origins in recorded windows of the user's cells."""

    def __init__(
        self,
        windows: Sequence[KpiWindow],
        config: ForecasterConfig,
        catalogue: Catalogue,
        *,
        series_per_batch: int = 32,
        least_history_steps: int = 0,
        max_history_steps: int = 1_440,
        last_ratio: float = 1.0,
    ) -> None:
        """Group the windows by step and number of KPIs, since a batch has one of each.

        Args:
            windows: Recorded cells.
            config: Shape of the forecaster.
            catalogue: KPI catalogue.
            series_per_batch: About how many series, B times K, a batch holds.
            least_history_steps: Least samples before an origin, where the windows hold as many.
            max_history_steps: Most samples before an origin; lags reach into them.
            last_ratio: Origins lie in this last part of each window. Histories reach back before
                it, as they do when the forecaster is used.

        Raises:
            DataError: No window is long enough to hold a context and a future.
        """
        self._config = config
        self._series_per_batch = series_per_batch
        self._least_history_steps = max(least_history_steps, MIN_CONTEXT_PATCHES * config.patch)
        self._max_history_steps = max_history_steps
        self._last_ratio = last_ratio
        groups: dict[tuple[int, int], list[KpiWindow]] = defaultdict(list)
        for window in windows:
            if window.steps >= self._first_origin(window) + config.patch:
                groups[window.step_ms, len(window.kpis)].append(window)
        if not groups:
            longest = max((window.steps for window in windows), default=0)
            shortest = (MIN_CONTEXT_PATCHES + 1) * config.patch
            raise DataError(
                f"expected at least one cell with {shortest} samples in a row on one grid, "
                f"{config.patch} of them in its last {last_ratio:.0%}; the longest has {longest}; "
                "add more history, or change the share that judges"
            )
        self._groups = list(groups.values())
        samples = np.array([sum(w.steps for w in group) for group in self._groups], dtype=float)
        self._group_shares = samples / samples.sum()
        self._limits = {
            name: _kind_and_limits(catalogue, name) for window in windows for name in window.kpis
        }

    def batch(self, rng: np.random.Generator) -> TrainingBatch:
        """Windows cut at random origins, all with the same history length and horizon."""
        config = self._config
        group = self._groups[int(rng.choice(len(self._groups), p=self._group_shares))]
        longest = max(window.steps for window in group)
        kept = _some_kpis(len(group[0].kpis), rng)
        # Log-uniform, as synthetic horizons are: short ones are asked for more often.
        future = int(np.exp(rng.uniform(0, np.log(config.horizon_patches + 1)))) * config.patch
        after = max(window.steps - self._first_origin(window) for window in group)
        future = min(future, after // config.patch * config.patch)
        room = min(self._max_history_steps, longest - future)
        steps = _history_steps(min(self._least_history_steps, room), room, rng)
        shares = np.array([float(w.steps) for w in group])
        chosen = rng.choice(
            len(group), size=max(1, self._series_per_batch // len(kept)), p=shares / shares.sum()
        )
        cuts = [self._cut(group[int(index)], steps, future, rng) for index in chosen]
        limits = [[self._limits[name] for name in group[int(index)].kpis] for index in chosen]
        table = np.array(limits, dtype=np.float64)[:, kept]  # (B, K, 3)
        return make_batch(
            np.stack([cut[kept, :steps] for cut, _ in cuts]),
            np.stack([cut[kept, steps:] for cut, _ in cuts]),
            config,
            origin_ms=np.array([origin for _, origin in cuts], dtype=np.int64),
            step_ms=group[0].step_ms,
            kinds=table[..., 0].astype(np.int64),
            lower=table[..., 1].astype(np.float32),
            upper=table[..., 2].astype(np.float32),
            time_zones=[group[int(index)].time_zone for index in chosen],
            planned=self._planned(
                [
                    (group[int(index)], origin)
                    for index, (_, origin) in zip(chosen, cuts, strict=True)
                ],
                steps,
                future,
            ),
        )

    def _planned(
        self, origins: Sequence[tuple[KpiWindow, int]], steps: int, future: int
    ) -> NDArray[np.float32]:
        """Events and holidays (B, N, W) around the origin of each window."""
        patch = self._config.patch
        patches = context_patches(self._config, steps)
        return np.stack(
            [
                planned_inputs(
                    origin_ms - patches * patch * window.step_ms,
                    patches + future // patch,
                    patch,
                    window.step_ms,
                    time_zone=window.time_zone,
                    country=window.country,
                    events=window.events,
                )
                for window, origin_ms in origins
            ]
        )

    def _first_origin(self, window: KpiWindow) -> int:
        return max(MIN_CONTEXT_PATCHES * self._config.patch, cut_in_time(window, self._last_ratio))

    def _cut(
        self, window: KpiWindow, steps: int, future: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.float32], int]:
        """Samples (K, steps + future) around a random origin, and the origin; NaN beyond the ends.

        An origin with nothing observed on one side teaches nothing, so a few are tried.
        """
        first = self._first_origin(window)
        for _ in range(DRAWS_A_WINDOW):
            origin = int(rng.integers(first, window.steps))
            past = window.values[:, max(0, origin - steps) : origin]
            coming = window.values[:, origin : origin + future]
            if not (np.isnan(past).all() or np.isnan(coming).all()):
                break
        cut = np.full((len(window.kpis), steps + future), np.nan, dtype=np.float32)
        cut[:, steps - past.shape[1] : steps] = past
        cut[:, steps : steps + coming.shape[1]] = coming
        return cut, window.start_ms + origin * window.step_ms


def _history_steps(least: int, most: int, rng: np.random.Generator) -> int:
    """A length from `least` to `most`: in half of the draws any, in the others mostly short."""
    if rng.random() < 0.5:
        return int(rng.integers(least, most, endpoint=True))
    return int(np.exp(rng.uniform(np.log(least), np.log(most + 1))))


def _some_kpis(kpis: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Places of the KPIs to show: a third of the time all, a third a single one, else some.

    Whoever asks brings the KPIs that they have, often a single one, which then has no others to
    learn from.
    """
    count = int(rng.choice([1, kpis, int(rng.integers(1, kpis, endpoint=True))]))
    return rng.permutation(kpis)[:count]


def _kind_and_limits(catalogue: Catalogue, name: str) -> tuple[float, float, float]:
    entry = catalogue.resolve(name)
    return (
        float(entry.kind.number),
        -math.inf if entry.lower is None else entry.lower,
        math.inf if entry.upper is None else entry.upper,
    )
