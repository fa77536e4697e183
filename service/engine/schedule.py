"""When requests would be finished, and which one is worked on next.

The model works on one call at a time and cannot be interrupted in one, so what can be promised is
what fits when requests are taken in the order of their due times: if any order meets them all, that
one does (Jackson, 1955). A request is accepted only where it and all that were accepted before it
still fit. What is worked on is another matter: the request with the fewest windows goes first, so
that a large one does not hold up small ones, unless that would make one with an earlier due time
late.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from service.engine.cost import CostModel, Effort
from service.engine.job import Job, Piece, Priority


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a job stands in the order of due times.

    Attributes:
        job: Which one.
        finish_s: When it is expected to be finished.
        reserve_s: What its call may take longer than that.
    """

    job: Job
    finish_s: float
    reserve_s: float

    @property
    def slack_s(self) -> float:
        """How much later it could be finished and still be sure to be in time."""
        return self.job.due_s - self.finish_s - self.reserve_s


class Schedule:
    """Works times out from what calls cost.

    Args:
        batch_limit: Windows in one call.
    """

    def __init__(self, batch_limit: int) -> None:
        self._batch_limit = batch_limit

    def slots(self, jobs: Iterable[Job], free_s: float) -> list[Slot]:
        """The jobs in the order of their due times, those for control before those of batches.

        Jobs of one kind share calls, so only the first of a call pays for it.

        Args:
            jobs: All that wait.
            free_s: When the model is free.
        """
        room: dict[Hashable, int] = {}
        slots: list[Slot] = []
        now_s = free_s
        for job in sorted(jobs, key=_urgency):
            cost, windows = job.step.cost, job.windows_left
            spare = room.get(job.kind, 0)
            calls = -(-max(0, windows - spare) // self._batch_limit)
            room[job.kind] = spare + calls * self._batch_limit - windows
            now_s += cost.estimate_s(Effort(job.left.work, calls * job.left.calls))
            slots.append(Slot(job, now_s, self._reserve_s(job)))
        return slots

    def own_s(self, job: Job) -> float:
        """What a job takes where nothing else is to be done."""
        calls = -(-job.windows_left // self._batch_limit)
        effort = Effort(job.left.work, calls * job.left.calls)
        return job.step.cost.estimate_s(effort)

    def _reserve_s(self, job: Job) -> float:
        cost, windows = job.step.cost, job.windows_left
        if not windows:
            return 0.0
        work = job.left.work / windows * min(windows, self._batch_limit)
        return (cost.margin_ratio - 1) * cost.estimate_s(Effort(work, job.left.calls))

    def first(self, slots: Sequence[Slot]) -> Job:
        """Which of at least one job is worked on next: the smallest that makes none late."""
        smallest = min(slots, key=lambda slot: (slot.job.windows_left, slot.job.queued_s)).job
        sooner = (slot.slack_s for slot in slots if slot.job.due_s < smallest.due_s)
        slack_s = min(sooner, default=math.inf)
        return smallest if self._piece_s(smallest) <= slack_s else slots[0].job

    def batch(
        self, head: Job, slots: Sequence[Slot], now_s: float, longest_s: float = math.inf
    ) -> list[Piece]:
        """Pieces that go into the next call: of `head`, and of all of its kind that fit with it.

        Args:
            head: The job that is worked on.
            slots: All jobs that wait.
            now_s: When the call begins.
            longest_s: A call should not take longer, as far as one window allows.
        """
        cost = head.step.cost
        limit = self._affordable(head, cost, longest_s)
        pieces = [head.take(limit, now_s)]
        effort, due_s = pieces[0].effort, head.due_s
        room = limit - len(pieces[0].windows)
        for job in (slot.job for slot in slots):
            if room <= 0:
                break
            if job is head or job.kind != head.kind:
                continue
            share = min(room, job.windows_left) / max(1, job.windows_left)
            grown = Effort(effort.work + share * job.left.work, effort.calls)
            if now_s + cost.margin_ratio * cost.estimate_s(grown) > min(due_s, job.due_s):
                continue
            piece = job.take(room, now_s)
            pieces.append(piece)
            effort = Effort(effort.work + piece.effort.work, effort.calls)
            due_s = min(due_s, job.due_s)
            room -= len(piece.windows)
        return pieces

    def _piece_s(self, job: Job) -> float:
        windows = min(job.windows_left, self._batch_limit)
        work = job.left.work * windows / max(1, job.windows_left)
        cost = job.step.cost
        return cost.margin_ratio * cost.estimate_s(Effort(work, job.left.calls))

    def _affordable(self, job: Job, cost: CostModel, longest_s: float) -> int:
        """Windows of a job that a call of at most `longest_s` holds, at least one."""
        if math.isinf(longest_s):
            return self._batch_limit
        window_s = cost.work_s * job.left.work / max(1, job.windows_left)
        spare_s = longest_s - cost.call_s * job.left.calls
        if window_s <= 0 or spare_s >= window_s * self._batch_limit:
            return self._batch_limit
        return max(1, math.floor(spare_s / window_s))


def _urgency(job: Job) -> tuple[bool, float]:
    return job.ask.priority is Priority.BATCH, job.due_s


def effort_of(pieces: Sequence[Piece]) -> Effort:
    """What a call of these pieces takes; they are of one kind."""
    efforts = [piece.effort for piece in pieces]
    return Effort(sum(each.work for each in efforts), max(each.calls for each in efforts))
