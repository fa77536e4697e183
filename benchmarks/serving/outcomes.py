"""What became of a load: answers in time, late, refused, expired, failed and lost, apart.

A request is *accepted* unless it was refused at the door (429) or the server said that it is not
ready (503). An accepted one that gets no answer of 200 within its budget counts against the server,
whether its answer was late, an expiry (504), another error, or never came.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.serving.generator import RUNGS, Record
from benchmarks.serving.http_client import LOST

ANSWERED = 200
REFUSED = (429, 503)
EXPIRED = 504


@dataclass(frozen=True)
class Tally:
    """Requests by what became of them; each is counted once but in `offered` and `rungs`.

    Attributes:
        offered: All of them.
        in_time: Answered within the budget, from the socket to the last byte.
        late: Answered, later than that.
        refused: At the door.
        expired: Accepted, and given up by the server at its deadline.
        failed: Any other status.
        lost: Without an answer.
        rungs: Of those in time, by rung.
    """

    offered: int
    in_time: int
    late: int
    refused: int
    expired: int
    failed: int
    lost: int
    rungs: dict[str, int]

    @property
    def accepted(self) -> int:
        """All that were not refused."""
        return self.offered - self.refused

    @property
    def in_time_of_accepted(self) -> float:
        """Share of the accepted ones that were answered in time; 1 where none was accepted."""
        return self.in_time / self.accepted if self.accepted else 1.0

    @property
    def in_time_of_offered(self) -> float:
        """Share of all that were answered in time; 1 where none was offered."""
        return self.in_time / self.offered if self.offered else 1.0

    def __add__(self, other: Tally) -> Tally:
        """Both together."""
        return Tally(
            offered=self.offered + other.offered,
            in_time=self.in_time + other.in_time,
            late=self.late + other.late,
            refused=self.refused + other.refused,
            expired=self.expired + other.expired,
            failed=self.failed + other.failed,
            lost=self.lost + other.lost,
            rungs={name: self.rungs[name] + other.rungs[name] for name in RUNGS},
        )


def tally(record: Record, budget_s: float) -> Tally:
    """Count what became of each request."""
    answered = record.status == ANSWERED
    in_time = answered & (record.latency_s <= budget_s)
    refused = np.isin(record.status, REFUSED)
    expired = record.status == EXPIRED
    lost = record.status == LOST
    return Tally(
        offered=len(record.status),
        in_time=int(in_time.sum()),
        late=int((answered & ~in_time).sum()),
        refused=int(refused.sum()),
        expired=int(expired.sum()),
        failed=int((~(answered | refused | expired | lost)).sum()),
        lost=int(lost.sum()),
        rungs={
            name: int((in_time & (record.rung == index)).sum()) for index, name in enumerate(RUNGS)
        },
    )


def throughput_per_s(record: Record, ramp_s: float) -> float:
    """Answers of 200 a second, from `ramp_s` until the last request was sent.

    Raises:
        ValueError: Nothing was sent after the ramp.
    """
    end_s = float(np.nanmax(record.sent_s)) if len(record.sent_s) else 0.0
    if end_s <= ramp_s:
        raise ValueError(f"expected requests after {ramp_s:g} s, the last was at {end_s:g} s")
    counted = (record.status == ANSWERED) & (record.done_s >= ramp_s) & (record.done_s < end_s)
    return float(counted.sum() / (end_s - ramp_s))


def refusal_seconds(record: Record) -> NDArray[np.float64]:
    """How long each refusal took, float64 (number of refusals,)."""
    is_refused = np.isin(record.status, REFUSED)
    refused: NDArray[np.float64] = record.latency_s[is_refused]
    return refused


def answer_seconds(record: Record) -> NDArray[np.float64]:
    """How long each answer of 200 took, float64 (number of answers,)."""
    answered: NDArray[np.float64] = record.latency_s[record.status == ANSWERED]
    return answered


def percentile_ms(seconds: NDArray[np.float64], level: float) -> float | None:
    """A percentile in milliseconds, None where there is nothing."""
    return float(np.percentile(seconds, level) * 1000) if len(seconds) else None
