"""Training windows of a direct regression: where they are, and their rows within bounded memory.

Axis legend: N windows, C samples of context, H steps, F features.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from training.opponents.fallback import Place
from training.opponents.rows import RowPlan

FEWEST_SEEN = 10
CHUNK_WINDOWS = 256
LEVEL_FLOOR_RATIO = 0.05
SMALLEST_FLOOR = 1e-6


@dataclass(frozen=True)
class Lesson:
    """One training window.

    Attributes:
        place: The series.
        origin: Position of its first target.
    """

    place: Place
    origin: int

    def target(self, horizon: int) -> NDArray[np.float32]:
        """What came: (H,)."""
        target: NDArray[np.float32] = self.place.series[self.origin : self.origin + horizon]
        return target


def lessons(places: Sequence[Place], horizon: int, context_steps: int, stride: int) -> list[Lesson]:
    """All windows with some history and some target, latest first within a series.

    Args:
        places: Series that end before anything is judged.
        horizon: Steps ahead.
        context_steps: C.
        stride: Steps between windows.
    """
    found = []
    for place in places:
        seen = np.concatenate([[0], np.cumsum(~np.isnan(place.series))])
        origins = np.arange(len(place.series) - horizon, FEWEST_SEEN - 1, -stride)
        history = seen[origins] - seen[np.maximum(origins - context_steps, 0)]
        targets = seen[origins + horizon] - seen[origins]
        kept = origins[(history >= FEWEST_SEEN) & (targets > 0)]
        found += [Lesson(place, int(origin)) for origin in kept]
    return found


def sample(all_of_them: Sequence[Lesson], most: int, seed: int) -> list[Lesson]:
    """At most so many of them, drawn by a seed."""
    if len(all_of_them) <= most:
        return list(all_of_them)
    picks = np.random.default_rng(seed).permutation(len(all_of_them))[:most]
    return [all_of_them[pick] for pick in np.sort(picks)]


def level_floor(some: Sequence[Lesson], horizon: int) -> float:
    """What is added to every window's level: a twentieth of the mean size of a target."""
    total, count = 0.0, 0
    for lesson in some:
        target = lesson.target(horizon)
        total += float(np.nansum(np.abs(target), dtype=np.float64))
        count += int(np.count_nonzero(~np.isnan(target)))
    return max(LEVEL_FLOOR_RATIO * total / max(count, 1), SMALLEST_FLOOR)


def contexts(some: Sequence[Lesson], context_steps: int) -> NDArray[np.float32]:
    """The samples before each origin, NaN where a history is shorter: (N, C)."""
    out = np.full((len(some), context_steps), np.nan, dtype=np.float32)
    for row, lesson in zip(out, some, strict=True):
        past = lesson.place.series[max(0, lesson.origin - context_steps) : lesson.origin]
        row[context_steps - len(past) :] = past
    return out


def rows_of(
    plan: RowPlan, some: Sequence[Lesson], floor: float
) -> Iterator[tuple[Sequence[int], NDArray[np.float32], NDArray[np.float64]]]:
    """Rows of windows, chunk by chunk: their numbers, features (n, H, F) and levels (n,)."""
    by_zone: dict[str, list[int]] = defaultdict(list)
    for number, lesson in enumerate(some):
        by_zone[lesson.place.window.time_zone].append(number)
    for zone, numbers in by_zone.items():
        for begin in range(0, len(numbers), CHUNK_WINDOWS):
            chunk = numbers[begin : begin + CHUNK_WINDOWS]
            members = [some[number] for number in chunk]
            starts = [m.place.window.start_ms + m.origin * m.place.window.step_ms for m in members]
            features, level = plan.rows(contexts(members, plan.context_steps), starts, zone, floor)
            yield chunk, features, level


def training_rows(
    plan: RowPlan, some: Sequence[Lesson], floor: float
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Features (n, F) and relative targets (n,) of all observed targets."""
    horizon = plan.horizon
    count = sum(int(np.count_nonzero(~np.isnan(lesson.target(horizon)))) for lesson in some)
    features = np.empty((count, plan.features), dtype=np.float32)
    targets = np.empty(count, dtype=np.float32)
    filled = 0
    for numbers, rows, level in rows_of(plan, some, floor):
        y = np.stack([some[number].target(horizon) for number in numbers]) / level[:, None]
        seen = ~np.isnan(y)
        end = filled + int(np.count_nonzero(seen))
        features[filled:end], targets[filled:end] = rows[seen], y[seen]
        filled = end
    return features, targets
