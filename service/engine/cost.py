"""What a call of a model costs: seconds a call and seconds a thousand samples, learnt as it runs.

The estimate is `call_s * calls + work_s * work`. Both are measured when a model is warmed up and
follow the machine from then on: newer calls count more, and what only one of them shows (a machine
that became slower altogether) moves both. Squares of relative errors are minimised, or the largest
calls alone would decide. How far calls exceed their estimate is kept beside it, so that a promise
can be made with the margin that this machine needs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from service.engine.recent import Recent

_MEMORY = 0.98
"""Weight of a call against the one after it: some fifty calls are remembered."""
_MEMORY_S = 10.0
"""Nor is a call remembered for much longer, or a spell that made all calls slow would be believed
in as long as it keeps requests away."""
_LEAST_MEMORY = 0.5
_MOST_GROWTH = 8.0
"""Of a call that took much longer than expected so much is believed: it may be the only one."""
_PROPORTION_WEIGHT = 0.1
"""Calls that the measured proportion between the two costs is worth."""
_RATIOS_KEPT, _LEAST_RATIOS = 200, 20
_RATIO_LEVEL = 0.99
_FIRST_MARGIN = 1.25
_LEAST_MARGIN, _MOST_MARGIN = 1.05, 4.0
_LEAST_S = 1e-9


@dataclass(frozen=True, slots=True)
class Effort:
    """What is asked of a model.

    Attributes:
        work: Thousands of samples that enter or leave it: K (context + horizon) a window.
        calls: Windows of different steps, lengths or numbers of KPIs go through it one after the
            other; this is how often.
    """

    work: float
    calls: int


@dataclass(frozen=True, slots=True)
class Measured:
    """A call that was made, and how long it took."""

    effort: Effort
    duration_s: float


class CostModel:
    """Learns what one rung costs.

    Args:
        measured: Calls of the warm-up, of at least two sizes; without any nothing costs anything.
    """

    def __init__(self, measured: Sequence[Measured] = ()) -> None:
        self.start_from(measured)

    def start_from(self, measured: Sequence[Measured]) -> None:
        """Forget what was learnt, and begin with these calls."""
        self._line = _line(measured)
        self._factors = (1.0, 1.0)
        self._sums = _Sums()
        self._ratios = Recent(_RATIOS_KEPT, _MEMORY_S, _LEAST_RATIOS)
        self._margin_ratio = _FIRST_MARGIN
        self._observed_s = -math.inf
        for one in measured:
            self.observe(one.effort, one.duration_s, -math.inf)

    @property
    def work_s(self) -> float:
        """Seconds a thousand samples."""
        return self._line[0] * self._factors[0]

    @property
    def call_s(self) -> float:
        """Seconds a call, whatever its size."""
        return self._line[1] * self._factors[1]

    @property
    def margin_ratio(self) -> float:
        """Durations stay below this many times their estimate, in 99 of 100 calls."""
        return self._margin_ratio

    def estimate_s(self, effort: Effort) -> float:
        """Seconds that a call is expected to take."""
        return self.work_s * effort.work + self.call_s * effort.calls

    def observe(self, effort: Effort, duration_s: float, now_s: float) -> None:
        """A call took this long, and ended now."""
        line_s = self._line[0] * effort.work + self._line[1] * effort.calls
        if line_s < _LEAST_S:
            return
        passed_s = now_s - self._observed_s if math.isfinite(self._observed_s) else 0.0
        self._observed_s = now_s
        expected_s = max(self.estimate_s(effort), _LEAST_S)
        self._ratios.append(duration_s / expected_s, now_s)
        memory = min(_MEMORY, max(_LEAST_MEMORY, math.exp(-passed_s / (_MEMORY_S / 4))))
        believed_s = min(duration_s, _MOST_GROWTH * expected_s)
        self._sums.add(self._line[0] * effort.work / line_s, believed_s / line_s, memory)
        self._factors = self._sums.factors()
        if len(self._ratios) >= _LEAST_RATIOS:
            level = self._ratios.quantile(_RATIO_LEVEL)
            self._margin_ratio = min(max(level, _LEAST_MARGIN), _MOST_MARGIN)


class _Sums:
    """Least squares of `ratio = u * share + v * (1 - share)`, in which newer calls count more."""

    def __init__(self) -> None:
        self._uu = self._uv = self._vv = self._u = self._v = 0.0

    def add(self, share: float, ratio: float, memory: float) -> None:
        rest = 1.0 - share
        self._uu = memory * self._uu + share * share
        self._uv = memory * self._uv + share * rest
        self._vv = memory * self._vv + rest * rest
        self._u = memory * self._u + share * ratio
        self._v = memory * self._v + rest * ratio

    def factors(self) -> tuple[float, float]:
        """U and v, drawn towards each other; equal where one of them would not be above 0."""
        uu, vv = self._uu + _PROPORTION_WEIGHT, self._vv + _PROPORTION_WEIGHT
        uv = self._uv - _PROPORTION_WEIGHT
        determinant = uu * vv - uv * uv
        u = (vv * self._u - uv * self._v) / determinant
        v = (uu * self._v - uv * self._u) / determinant
        if min(u, v) > 0:
            return u, v
        together = (self._u + self._v) / (self._uu + 2 * self._uv + self._vv)
        return together, together


def _line(measured: Sequence[Measured]) -> tuple[float, float]:
    """Seconds a thousand samples and seconds a call, neither below zero, by relative squares."""
    rows = [one for one in measured if one.duration_s > _LEAST_S]
    if not rows:
        return 0.0, 0.0
    durations_s = np.array([one.duration_s for one in rows])
    efforts = np.array([[one.effort.work, one.effort.calls] for one in rows])
    scaled = efforts / durations_s[:, None]
    (work_s, call_s), *_ = np.linalg.lstsq(scaled, np.ones(len(rows)), rcond=None)
    if work_s >= 0 and call_s >= 0:
        return float(work_s), float(call_s)
    column = int(work_s < 0)  # the other one alone
    alone = float(scaled[:, column].sum() / (scaled[:, column] ** 2).sum())
    return (alone, 0.0) if column == 0 else (0.0, alone)
