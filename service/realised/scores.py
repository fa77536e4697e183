"""Sums of realised scores, for all time and for the recent past.

The formulas are those of `model.accuracy`, as in a backtest; the steps ahead fall into the buckets
of `model.calibration`. Only sums are kept, so that parts can be added in any order. The recent past
is a ring of slots by the time of the targets, never by a clock: the newest target decides which
slots are in it, and the result does not depend on the order of arrival.

Axis legend: n targets, Q quantile levels, S slots, D kinds of KPI, G buckets of steps ahead,
C sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kpi.catalogue import KpiKind
from model.accuracy import Accuracy, measure
from model.predictor import ModelIdentity, Rung

SLOTS = 24
"""Parts of the recent past; it forgets one of them at a time."""

BUCKETS = 16
"""Buckets of steps ahead: 1, 2-3, 4-7, … and the last, from step 32,768, without an end."""

# targets, sum of |y|, quantile loss (mean over the levels of twice the pinball loss), targets
# between the outermost levels, distance between these
_COLUMNS = 5
# A call of `measure` costs tens of microseconds however few its targets are.
_MOST_UNSUMMED = 4096
_OUTSIDE = SLOTS  # number of the slot of targets that are older than the ring

SUMS_BYTES = (SLOTS + 1) * len(KpiKind) * BUCKETS * _COLUMNS * 8
"""Memory of the sums of one account."""


class AccountKey(NamedTuple):
    """What is summed together: forecasts of one model at one rung and at the same levels."""

    model: ModelIdentity
    rung: Rung
    levels: tuple[float, ...]

    @property
    def nominal_coverage(self) -> float | None:
        """Distance of the outermost levels; None for a single level, which has no interval."""
        return self.levels[-1] - self.levels[0] if len(self.levels) > 1 else None


@dataclass(frozen=True, slots=True)
class Score:
    """Sums of scored targets.

    Attributes:
        samples: Number of targets.
        absolute_target: Sum of |y|, in the KPIs' units.
        quantile_loss: Sum of the mean over the levels of twice the pinball loss.
        covered: Targets between the lowest and the highest level.
        width: Sum of the distance between these.
    """

    samples: int
    absolute_target: float
    quantile_loss: float
    covered: int
    width: float

    @property
    def wql(self) -> float | None:
        """Weighted quantile loss; None where all targets are 0."""
        return self.quantile_loss / self.absolute_target if self.absolute_target > 0 else None

    @property
    def relative_width(self) -> float | None:
        """Width of the interval relative to the targets; None where all of them are 0."""
        return self.width / self.absolute_target if self.absolute_target > 0 else None

    @property
    def coverage(self) -> float | None:
        """Share of the targets in the interval; None where there is no target."""
        return self.covered / self.samples if self.samples else None


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """Scores of one kind of KPI and one bucket of steps ahead.

    Attributes:
        kind: Kind of KPI.
        first_step: First step ahead of the bucket.
        last_step: Its last one, None where it has no end.
        recent: Over the recent past.
        total: Since the start.
    """

    kind: KpiKind
    first_step: int
    last_step: int | None
    recent: Score
    total: Score

    @property
    def horizon(self) -> str:
        """The bucket in a word: `1`, `2-3`, `32768+`."""
        if self.last_step is None:
            return f"{self.first_step}+"
        if self.last_step == self.first_step:
            return str(self.first_step)
        return f"{self.first_step}-{self.last_step}"


class Scores:
    """Sums of one account; not safe to use from several threads.

    Args:
        slot_ms: Length of a slot; the recent past is `SLOTS` of them.
    """

    def __init__(self, slot_ms: int) -> None:
        from model.calibration import step_buckets  # loads torch, which a model has done by now

        self._slot_ms = slot_ms
        self._first_steps = np.array(step_buckets((1 << BUCKETS) - 1))  # (G,)
        shape = len(KpiKind), BUCKETS, _COLUMNS
        self._slots = np.zeros((SLOTS, *shape))  # (S, D, G, C)
        self._total = np.zeros(shape)  # (D, G, C)
        self._newest: int | None = None
        self._unsummed: list[_Part] = []
        self.first_ms: int | None = None
        self.last_ms: int | None = None

    @property
    def recent_since_ms(self) -> int | None:
        """Begin of the recent past; None where nothing was scored."""
        self._sum()
        return None if self._newest is None else (self._newest + 1 - SLOTS) * self._slot_ms

    def add(
        self,
        targets: NDArray[np.floating],
        quantiles: NDArray[np.floating],
        levels: Sequence[float],
        kinds: NDArray[np.integer],
        steps: NDArray[np.integer],
        end_ms: NDArray[np.integer],
    ) -> None:
        """Score targets against what was forecast for them.

        Args:
            targets: (n,), none missing.
            quantiles: (n, Q), none missing, ascending over Q.
            levels: The Q levels, the same at every call.
            kinds: (n,) number of each KPI's kind.
            steps: (n,) steps ahead, from 1.
            end_ms: (n,) end of each target's period.
        """
        if not len(targets):
            return
        first, last = int(end_ms.min()), int(end_ms.max())
        self.first_ms = first if self.first_ms is None else min(first, self.first_ms)
        self.last_ms = last if self.last_ms is None else max(last, self.last_ms)
        bucket = np.searchsorted(self._first_steps, steps, side="right") - 1
        # A period belongs to the slot that its last millisecond lies in.
        slot = (end_ms - 1) // self._slot_ms
        self._unsummed.append(_Part(targets, quantiles, tuple(levels), kinds, bucket, slot))
        if sum(len(part.targets) for part in self._unsummed) >= _MOST_UNSUMMED:
            self._sum()

    def rows(self) -> Iterator[ScoreRow]:
        """Scores of every kind and bucket that has any, in this order."""
        self._sum()
        recent = self._slots.sum(axis=0)  # (D, G, C)
        for kind in KpiKind:
            for bucket, first in enumerate(self._first_steps.tolist()):
                total = self._total[kind.number, bucket]
                if total[0]:
                    last = None if bucket + 1 == BUCKETS else 2 * first - 1
                    yield ScoreRow(
                        kind, first, last, _score(recent[kind.number, bucket]), _score(total)
                    )

    def _sum(self) -> None:
        """Add what was put aside to the sums."""
        if not self._unsummed:
            return
        part = _Part.joined(self._unsummed)
        self._unsummed.clear()
        self._move_to(int(part.slot.max()))
        assert self._newest is not None
        place = np.where(part.slot > self._newest - SLOTS, part.slot % SLOTS, _OUTSIDE)  # (n,)
        group = (place * len(KpiKind) + part.kinds) * BUCKETS + part.bucket
        order = np.argsort(group, kind="stable")
        bounds = np.flatnonzero(np.diff(group[order])) + 1
        for members in np.split(order, bounds):
            quantiles = part.quantiles[members][:, None]  # (members, 1, Q)
            sums = _sums_of(measure(quantiles, part.targets[members][:, None], part.levels))
            first = members[0]
            kind, bucket = part.kinds[first], part.bucket[first]
            self._total[kind, bucket] += sums
            if place[first] != _OUTSIDE:
                self._slots[place[first], kind, bucket] += sums

    def _move_to(self, slot: int) -> None:
        """Let the ring end at this slot, unless it ends later already."""
        if self._newest is None:
            self._newest = slot
        passed = min(slot - self._newest, SLOTS)
        for number in range(slot - passed + 1, slot + 1):
            self._slots[number % SLOTS] = 0
        self._newest = max(slot, self._newest)


@dataclass(frozen=True, slots=True)
class _Part:
    """Targets (n,) with quantiles (n, Q) that are not in the sums yet."""

    targets: NDArray[np.floating]
    quantiles: NDArray[np.floating]
    levels: tuple[float, ...]
    kinds: NDArray[np.integer]
    bucket: NDArray[np.integer]
    slot: NDArray[np.integer]

    @staticmethod
    def joined(parts: Sequence[_Part]) -> _Part:
        return _Part(
            np.concatenate([part.targets for part in parts]),
            np.concatenate([part.quantiles for part in parts]),
            parts[0].levels,
            np.concatenate([part.kinds for part in parts]),
            np.concatenate([part.bucket for part in parts]),
            np.concatenate([part.slot for part in parts]),
        )


def _sums_of(accuracy: Accuracy) -> NDArray[np.float64]:
    """The sums that are kept of a measured group, (C,)."""
    return np.array(
        [
            accuracy.targets,
            accuracy.absolute_target,
            accuracy.pinball.mean(),
            accuracy.inside,
            accuracy.width,
        ]
    )


def _score(sums: NDArray[np.float64]) -> Score:
    samples, absolute_target, quantile_loss, covered, width = sums.tolist()
    return Score(round(samples), absolute_target, quantile_loss, round(covered), width)
