"""Calibration: quantiles moved so that they cover what they say, learnt from past forecasts.

Split-conformal prediction (Vovk, Gammerman and Shafer 2005) with scores in units of the forecast's
own width, that is conformalised quantile regression in the form CQR-r (Romano, Patterson and Candes
2019; Sesia and Candes 2020). With q the quantile of a level and w the distance between the
forecast's quantiles nearest 0.1 and 0.9, both in model space, sorted and within the KPI's limits,
the score of a target y is (y - q) / w, and the calibrated quantile is q + w * shift. How shifts are
read off past scores is the matter of whoever trains; this is what they are, and what they do.

Shifts are by kind of KPI and by steps ahead, in buckets that do not depend on the horizon that is
asked for. Being relative to the width they keep the scale of a series, and they leave a forecast
without width (a cell that is off: all quantiles at the limit) as it is.

Axis legend: B windows, K KPIs, H steps of the horizon, Q quantile levels, G buckets of steps ahead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from kpi.catalogue import KpiKind
from model.errors import CheckpointError, ModelError
from model.quantiles import within_limits

METHOD = "split-conformal (CQR-r) by KPI kind and steps ahead"
WIDTH_LEVELS = (0.1, 0.9)
LEAST_WIDTH = 1e-6
"""Floor of w in scores, in spreads: a target off a forecast without width is far off, not NaN."""

MOST_SHIFT = 4.0
"""Bound on a shift, in widths: beyond it a forecast is no longer the one that was trained."""

Shifts = tuple[tuple[float, ...], ...]
"""(G, Q): one row a bucket of steps ahead, one shift a level."""


@dataclass(frozen=True)
class Calibration:
    """Shifts of the quantiles of one set of weights.

    Attributes:
        levels: The Q levels that the shifts belong to, those of the forecaster.
        first_steps: First step ahead of each of the G buckets, ascending from 1; the last bucket
            has no end.
        shifts: By kind of KPI, in widths.
        other: Shifts of the kinds that `shifts` does not name.
        counts: By kind and bucket, how many targets a row of `shifts` was learnt from.
        provenance: What it was learnt from, plain values.
        method: How it was learnt.
    """

    levels: tuple[float, ...]
    first_steps: tuple[int, ...]
    shifts: Mapping[str, Shifts]
    other: Shifts
    counts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    method: str = METHOD

    def __post_init__(self) -> None:
        ascending = all(a < b for a, b in pairwise(self.levels))
        if len(self.levels) < 2 or not ascending or not all(0 < q < 1 for q in self.levels):
            raise ModelError(f"expected ascending levels inside (0, 1), got {self.levels}")
        if self.first_steps[:1] != (1,) or any(a >= b for a, b in pairwise(self.first_steps)):
            raise ModelError(f"expected first steps ascending from 1, got {self.first_steps}")
        if unknown := {*self.shifts, *self.counts} - {str(kind) for kind in KpiKind}:
            raise ModelError(f"expected kinds of KPI ({_kinds()}), got {sorted(unknown)}")
        for name, rows in {**self.shifts, "other": self.other}.items():
            self._check_rows(name, rows)
        for name, counts in self.counts.items():
            if len(counts) != len(self.first_steps) or min(counts) < 0:
                raise ModelError(f"expected {len(self.first_steps)} counts from 0 for {name}")

    def _check_rows(self, name: str, rows: Shifts) -> None:
        expected = len(self.first_steps), len(self.levels)
        if len(rows) != expected[0] or any(len(row) != expected[1] for row in rows):
            raise ModelError(f"expected {expected[0]} rows of {expected[1]} shifts for {name}")
        if not all(abs(shift) <= MOST_SHIFT for row in rows for shift in row):
            raise ModelError(f"expected shifts of at most {MOST_SHIFT:g} widths for {name}")

    def apply(self, scaled: Tensor, kinds: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
        """Calibrated quantiles, sorted.

        They start from quantiles within the limits, but those that end at a limit or beyond it lie
        as far beyond it as the forecaster had them: rounding cannot bring them back over it, and a
        clamp of the KPI values puts them on it exactly.

        Args:
            scaled: (B, K, H, Q) as the forecaster gives them, in model space.
            kinds: int64 (B, K), number of each KPI's kind.
            lower: (B, K) least possible value in model space, -inf where there is none.
            upper: (B, K) greatest possible value in model space.

        Returns:
            (B, K, H, Q) in the type of `scaled`.
        """
        steps = torch.arange(1, scaled.shape[2] + 1)
        buckets = torch.bucketize(steps, torch.tensor(self.first_steps), right=True) - 1  # (H,)
        shifts = self._table[kinds][:, :, buckets]  # (B, K, H, Q)
        ordered = scaled.sort(dim=-1).values
        within = within_limits(ordered, lower, upper)
        moved = within + _width(within, self.levels)[..., None] * shifts.to(scaled.dtype)
        over = ordered - within  # below 0 at the lower limit, above 0 at the upper one
        moved = moved + torch.where(moved <= lower[..., None, None], over.clamp(max=0), 0)
        moved = moved + torch.where(moved >= upper[..., None, None], over.clamp(min=0), 0)
        return moved.sort(dim=-1).values

    @cached_property
    def _table(self) -> Tensor:
        """Shifts (kinds, G, Q) by number of the kind."""
        rows = [self.shifts.get(str(kind), self.other) for kind in KpiKind]
        return torch.tensor(rows, dtype=torch.float64)

    def over(self, earlier: Calibration | None) -> Calibration:
        """This calibration, with the kinds of which it knows nothing as `earlier` has them.

        The provenance says under `kept` what each of these was learnt from. Only for the same
        weights; one of other levels or buckets is left aside.
        """
        alike = earlier is not None and (earlier.levels, earlier.first_steps) == (
            self.levels,
            self.first_steps,
        )
        if earlier is None or not alike:
            return self
        kept = [*sorted(earlier.shifts.keys() - self.shifts.keys()), "other"]
        return Calibration(
            levels=self.levels,
            first_steps=self.first_steps,
            shifts={**earlier.shifts, **self.shifts},
            other=earlier.other,
            counts={**earlier.counts, **self.counts},
            provenance={
                **self.provenance,
                "kept": {name: _story_of(name, earlier.provenance) for name in kept},
            },
            method=self.method,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a checkpoint's metadata and the model card."""
        return {
            "method": self.method,
            "provenance": dict(self.provenance),
            "levels": list(self.levels),
            "first_steps": list(self.first_steps),
            "counts": {name: list(counts) for name, counts in self.counts.items()},
            "shifts": {name: [list(row) for row in rows] for name, rows in self.shifts.items()},
            "other": [list(row) for row in self.other],
        }

    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> Calibration:
        """The calibration that `to_dict` wrote.

        Raises:
            CheckpointError: A field is missing, unknown, of a wrong shape or no finite number.
        """
        try:
            return Calibration(
                levels=tuple(_number(level) for level in fields["levels"]),
                first_steps=tuple(_whole(step) for step in fields["first_steps"]),
                shifts={name: _rows(rows) for name, rows in fields["shifts"].items()},
                other=_rows(fields["other"]),
                counts={
                    name: tuple(_whole(count) for count in counts)
                    for name, counts in fields["counts"].items()
                },
                provenance=dict(fields["provenance"]),
                method=str(fields["method"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, ModelError) as error:
            raise CheckpointError(
                f"the checkpoint's calibration cannot be used by this version: {error}; "
                "calibrate it again"
            ) from error


def scores(
    scaled: Tensor, target: Tensor, levels: Sequence[float], lower: Tensor, upper: Tensor
) -> Tensor:
    """How far targets lie from each quantile, in widths of their forecast.

    Args:
        scaled: (B, K, H, Q) as the forecaster gives them, in model space.
        target: (B, K, H) in model space, NaN where missing.
        levels: The Q levels.
        lower: (B, K) least possible value in model space, -inf where there is none.
        upper: (B, K) greatest possible value in model space.

    Returns:
        (B, K, H, Q), NaN where the target is missing.
    """
    within = within_limits(scaled.sort(dim=-1).values, lower, upper)
    width = _width(within, levels).clamp(min=LEAST_WIDTH)
    return (target[..., None] - within) / width[..., None]


def step_buckets(max_horizon: int) -> tuple[int, ...]:
    """First steps of buckets that double in length: 1, 2, 4, 8, … up to the longest horizon."""
    return tuple(2**power for power in range(max_horizon.bit_length()))


def _width(within: Tensor, levels: Sequence[float]) -> Tensor:
    """Distance (B, K, H) between the quantiles (B, K, H, Q) nearest 0.1 and 0.9."""
    low, high = (_nearest(levels, level) for level in WIDTH_LEVELS)
    return within[..., high] - within[..., low]


def _nearest(levels: Sequence[float], wanted: float) -> int:
    return min(range(len(levels)), key=lambda place: abs(levels[place] - wanted))


def _story_of(name: str, provenance: Mapping[str, Any]) -> dict[str, Any]:
    """What the shifts of a kind, or the others, were learnt from.

    Flat, so that the card of a checkpoint that is calibrated every week does not grow.
    """
    kept = provenance.get("kept", {})
    own = {key: value for key, value in provenance.items() if key != "kept"}
    return dict(kept.get(name, own))


def _rows(rows: Any) -> Shifts:
    return tuple(tuple(_number(shift) for shift in row) for row in rows)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"expected a finite number, got {value!r}")
    return float(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"expected a whole number, got {value!r}")
    return value


def _kinds() -> str:
    return ", ".join(KpiKind)
