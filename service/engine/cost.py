"""What a call of a model costs: seconds a call and seconds a thousand samples, learnt as it runs.

The estimate is `call_s * calls + work_s * work`. Both are measured when a model is warmed up and
follow the machine from then on, all rungs on one thread together: newer calls count more, and what
only one of the two shows (a machine that became slower altogether) moves both. How far calls exceed
their estimate is kept beside it, so that a promise can be made with the reserve that this machine
needs: what disturbs a call comes now and then, so that its spread grows with the root of the call's
length, and a short call that was held up says little of long ones.
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
_SPREADS_KEPT, _LEAST_SPREADS = 200, 20
_SPREAD_LEVEL = 0.99
_FIRST_RESERVE = 0.25
_LEAST_RESERVE, _MOST_RESERVE = 0.05, 3.0
"""Shares of an estimate."""
_LEAST_S, _LEAST_RATIO = 1e-9, 1e-6


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


class Pace:
    """How fast a thread is, against what was measured at the start: the same for all it is given.

    What one rung shows holds for the others, so that a rung which no request can have for now is
    not believed to be slow for longer than the others are.
    """

    def __init__(self) -> None:
        self._factors = (1.0, 1.0)
        self._sums = _Sums()
        self._spreads = Recent(_SPREADS_KEPT, _MEMORY_S, _LEAST_SPREADS)
        self._spread: float | None = None
        self._observed_s = -math.inf
        # Of the calls that are remembered: what they would have taken at the start, and how many.
        self._lines_s = self._calls = 0.0

    @property
    def factors(self) -> tuple[float, float]:
        """How many times as long samples take, and calls."""
        return self._factors

    def reserve_s(self, estimate_s: float) -> float:
        """By how much calls of this estimate exceed it at most, in 99 of 100."""
        if self._spread is None:
            return _FIRST_RESERVE * estimate_s
        reserve_s = self._spread * math.sqrt(estimate_s)
        return min(max(reserve_s, _LEAST_RESERVE * estimate_s), _MOST_RESERVE * estimate_s)

    @property
    def observed_s(self) -> float:
        """When the last call ended that it has learnt from."""
        return self._observed_s

    def expected_ratio(self, share: float) -> float:
        """How many times as long a call takes of which samples are this share."""
        return self._factors[0] * share + self._factors[1] * (1 - share)

    def observe(self, share: float, line_s: float, duration_s: float, now_s: float) -> None:
        """A call took so long, and ended now.

        Args:
            share: Of samples in it, against the call itself.
            line_s: What it would have taken at the start.
            duration_s: What it took.
            now_s: When it ended.
        """
        passed_s = now_s - self._observed_s if math.isfinite(self._observed_s) else 0.0
        self._observed_s = now_s
        ratio, expected = duration_s / line_s, max(self.expected_ratio(share), _LEAST_RATIO)
        expected_s = expected * line_s
        self._spreads.append((duration_s - expected_s) / math.sqrt(expected_s), now_s)
        memory = min(_MEMORY, max(_LEAST_MEMORY, math.exp(-passed_s / (_MEMORY_S / 4))))
        self._lines_s = memory * self._lines_s + line_s
        self._calls = memory * self._calls + 1
        weight = line_s * self._calls / self._lines_s
        self._sums.add(share, min(ratio, _MOST_GROWTH * expected), memory, weight)
        self._factors = self._sums.factors()
        if len(self._spreads) >= _LEAST_SPREADS:
            self._spread = self._spreads.quantile(_SPREAD_LEVEL)


class CostModel:
    """Learns what one rung costs.

    Args:
        measured: Calls of the warm-up, of at least two sizes; without any nothing costs anything.
        pace: Of the thread that makes the calls; one of its own by default.
    """

    def __init__(self, measured: Sequence[Measured] = (), pace: Pace | None = None) -> None:
        self.start_from(measured, pace or Pace())

    def start_from(
        self, measured: Sequence[Measured], pace: Pace, now_s: float = -math.inf
    ) -> None:
        """Forget what was learnt, and begin with these calls, made just now and at this pace."""
        work_s, call_s = _line(measured)
        work_factor, call_factor = pace.factors
        self._line = work_s / work_factor, call_s / call_factor
        self._pace = pace
        for one in measured:
            self.observe(one.effort, one.duration_s, now_s)

    @property
    def work_s(self) -> float:
        """Seconds a thousand samples."""
        return self._line[0] * self._pace.factors[0]

    @property
    def call_s(self) -> float:
        """Seconds a call, whatever its size."""
        return self._line[1] * self._pace.factors[1]

    def reserve_s(self, estimate_s: float) -> float:
        """By how much calls of this estimate exceed it at most, in 99 of 100."""
        return self._pace.reserve_s(estimate_s)

    def longest_s(self, effort: Effort) -> float:
        """Seconds that a call takes at most, in 99 of 100."""
        estimate_s = self.estimate_s(effort)
        return estimate_s + self.reserve_s(estimate_s)

    def estimate_s(self, effort: Effort) -> float:
        """Seconds that a call is expected to take."""
        return self.work_s * effort.work + self.call_s * effort.calls

    def observe(self, effort: Effort, duration_s: float, now_s: float) -> None:
        """A call took this long, and ended now."""
        line_s = self._line[0] * effort.work + self._line[1] * effort.calls
        if line_s >= _LEAST_S:
            share = self._line[0] * effort.work / line_s
            self._pace.observe(share, line_s, duration_s, now_s)


class _Sums:
    """Least squares of `ratio = u * share + v * (1 - share)`, in which newer calls count more."""

    def __init__(self) -> None:
        self._uu = self._uv = self._vv = self._u = self._v = 0.0

    def add(self, share: float, ratio: float, memory: float, weight: float) -> None:
        """One more call, which counts so much; `memory` is what the earlier ones count by now."""
        rest = 1.0 - share
        self._uu = memory * self._uu + weight * share * share
        self._uv = memory * self._uv + weight * share * rest
        self._vv = memory * self._vv + weight * rest * rest
        self._u = memory * self._u + weight * share * ratio
        self._v = memory * self._v + weight * rest * ratio

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
