"""Scores of past forecasts, from which a calibration is read: a bounded, even sample of them.

Of each kind of KPI and each bucket of steps ahead at most `ROWS` targets are kept, every one with
the same chance (those with the lowest of keys drawn at random), so memory does not grow with the
data. Where a bucket has seen few forecasts its shifts lean on those of the whole kind, and these on
all kinds, in proportion to n / (n + `LEAN`).

Axis legend: B windows, K KPIs, S series (B times K of one kind), H steps of the horizon, Q quantile
levels, G buckets of steps ahead, N targets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpi.catalogue import KpiKind
from model.calibration import Calibration, Shifts, step_buckets
from training.conformal import conformal_shifts
from training.errors import DataError

ROWS = 4_096
FEWEST_FORECASTS = 20
"""Fewer forecasts than these say nothing: their bucket has the shifts of its kind, their kind those
of all kinds, and data with fewer in all are refused."""

LEAN = 50.0
"""Forecasts that a parent's shifts are worth. A forecast counts once, however many targets it has,
since the targets of one forecast are not independent."""

GROUPS = 24
"""Into how many groups whoever adds scores divides them, at most."""

DIGITS = 6


class ScoreSample:
    """Takes scores batch by batch and tells the shifts."""

    def __init__(self, levels: Sequence[float], max_horizon: int, seed: int) -> None:
        """Begin without scores.

        Args:
            levels: The Q levels of the forecaster.
            max_horizon: Its longest horizon.
            seed: Of the choice of targets that are kept.
        """
        self._levels = tuple(levels)
        self._first_steps = step_buckets(max_horizon)
        self._rng = np.random.default_rng(seed)
        shape = len(KpiKind), len(self._first_steps)
        self._targets = np.zeros(shape, dtype=np.int64)
        self._forecasts = np.zeros(shape, dtype=np.int64)
        self._series = np.zeros(len(KpiKind), dtype=np.int64)
        nothing = np.empty((0, 2 + len(self._levels)), dtype=np.float32)
        self._kept = dict.fromkeys(np.ndindex(shape), nothing)  # key, group, then Q scores

    @property
    def forecasts(self) -> int:
        """Forecasts of one KPI that had a target."""
        return int(self._series.sum())

    @property
    def targets(self) -> int:
        """Targets seen."""
        return int(self._targets.sum())

    def add(
        self,
        scores: NDArray[np.float32],
        kinds: NDArray[np.int64],
        groups: NDArray[np.int64],
    ) -> None:
        """Take the scores of a batch.

        Args:
            scores: (B, K, H, Q), NaN where there was no target.
            kinds: (B, K), number of each KPI's kind.
            groups: (B,) from 0 to `GROUPS`, what windows have a chance to be off in common.
        """
        seen = np.asarray(np.isfinite(scores).all(axis=-1))  # (B, K, H)
        grouped = np.broadcast_to(groups[:, None, None, None], (*seen.shape, 1))
        scores = np.concatenate([grouped.astype(np.float32), scores], axis=-1)  # (B, K, H, 1 + Q)
        ends = (*self._first_steps[1:], scores.shape[2] + 1)
        for kind in np.unique(kinds):
            own, own_seen = scores[kinds == kind], seen[kinds == kind]  # (S, H, 1 + Q), (S, H)
            self._series[kind] += own_seen.any(1).sum()
            for bucket, (first, end) in enumerate(zip(self._first_steps, ends, strict=True)):
                steps = slice(first - 1, end - 1)
                rows = own[:, steps][own_seen[:, steps]]  # (N, 1 + Q)
                if len(rows):
                    self._targets[kind, bucket] += len(rows)
                    self._forecasts[kind, bucket] += own_seen[:, steps].any(1).sum()
                    self._keep((int(kind), bucket), rows)

    def _keep(self, place: tuple[int, int], rows: NDArray[np.float32]) -> None:
        keys = self._rng.random((len(rows), 1), dtype=np.float32)
        both = np.concatenate([self._kept[place], np.concatenate([keys, rows], axis=1)])
        if len(both) > ROWS:
            both = both[np.argpartition(both[:, 0], ROWS)[:ROWS]]
        self._kept[place] = both

    def calibration(self, provenance: Mapping[str, Any]) -> Calibration:
        """The shifts that the scores ask for.

        Args:
            provenance: What the scores come from; how many there were is added.

        Raises:
            DataError: There were too few forecasts.
        """
        if self.forecasts < FEWEST_FORECASTS:
            raise DataError(
                f"expected at least {FEWEST_FORECASTS} forecasts with a value to calibrate on, "
                f"got {self.forecasts}; add more history or cells, or a larger share of it"
            )
        kinds = [kind for kind in KpiKind if self._targets[kind.number].any()]
        nothing = np.zeros(len(self._levels))
        overall = self._shifts(kinds, None, self.forecasts, nothing, lean=0.0)
        shifts: dict[str, Shifts] = {}
        for kind in kinds:
            whole = self._shifts([kind], None, int(self._series[kind.number]), overall)
            shifts[str(kind)] = self._by_bucket([kind], whole)
        return Calibration(
            levels=self._levels,
            first_steps=self._first_steps,
            shifts=shifts,
            other=self._by_bucket(kinds, overall),
            counts={str(kind): tuple(self._targets[kind.number].tolist()) for kind in kinds},
            provenance={**provenance, "forecasts": self.forecasts, "targets": self.targets},
        )

    def _by_bucket(self, kinds: Sequence[KpiKind], parent: NDArray[np.float64]) -> Shifts:
        """(G, Q) shifts of some kinds together."""
        rows = []
        for bucket in range(len(self._first_steps)):
            forecasts = int(sum(self._forecasts[kind.number, bucket] for kind in kinds))
            row = self._shifts(kinds, bucket, forecasts, parent)
            rows.append(tuple(np.round(row, DIGITS).tolist()))
        return tuple(rows)

    def _shifts(
        self,
        kinds: Sequence[KpiKind],
        bucket: int | None,
        forecasts: int,
        parent: NDArray[np.float64],
        lean: float = LEAN,
    ) -> NDArray[np.float64]:
        """(Q,) shifts of some kinds, in one bucket or all; few lean on the parent's."""
        if forecasts < FEWEST_FORECASTS:
            return parent
        buckets = range(len(self._first_steps)) if bucket is None else [bucket]
        kept = np.concatenate([self._kept[kind.number, each] for kind in kinds for each in buckets])
        own = conformal_shifts(kept[:, 2:], kept[:, 1].astype(np.int64), self._levels)
        weight = forecasts / (forecasts + lean)
        return np.asarray(weight * own + (1 - weight) * parent)
