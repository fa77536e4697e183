"""When requests would be finished, and which one is worked on next.

The model works on one call at a time and cannot be interrupted in one, so what can be promised is
what fits when requests are taken in the order of their due times: if any order meets them all, that
one does (Jackson, 1955). A request is accepted only where it and all that were accepted before it
still fit. What is worked on is another matter: the request with the fewest windows goes first, so
that a large one does not hold up small ones, and a call is filled with all that can share it,
unless either would make one with an earlier due time late.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from service.engine.cost import CostModel, Effort
from service.engine.job import Job, Piece
from service.engine.plan import Plan, Slot

_ROUNDING = 1e-9


class Schedule:
    """Works times out from what calls cost.

    Args:
        batch_limit: Windows in one call.
    """

    def __init__(self, batch_limit: int) -> None:
        self._batch_limit = batch_limit

    def plan(self, jobs: Iterable[Job], free_s: float) -> Plan:
        """The calls in which jobs would be answered.

        Args:
            jobs: All that wait.
            free_s: When the model is free.
        """
        return Plan(self._batch_limit, free_s, jobs)

    def own_s(self, job: Job) -> float:
        """What a job takes where nothing else is to be done."""
        return job.step.cost.estimate_s(job.left)

    def first(self, slots: Sequence[Slot]) -> Job:
        """Which of at least one job is worked on next: the smallest that makes none late."""
        smallest = min(slots, key=lambda slot: (slot.job.windows_left, slot.job.queued_s)).job
        urgent = slots[0].job
        if smallest is urgent:
            return urgent
        sooner_s, others_s = math.inf, math.inf
        for slot in slots:
            if slot.job.due_s < smallest.due_s:
                sooner_s = min(sooner_s, slot.slack_s)
            elif slot.job is not smallest:
                others_s = min(others_s, slot.slack_s)
        # Out of its turn it may leave the others in one call more than was planned.
        call_s = max(slot.job.step.cost.call_s * self._passes(slot.job) for slot in slots)
        fits = self._piece_s(smallest) + call_s <= sooner_s and call_s <= others_s
        return smallest if fits else urgent

    def batch(
        self, head: Job, slots: Sequence[Slot], now_s: float, longest_s: float = math.inf
    ) -> list[Piece]:
        """Pieces that go into the next call: of `head`, and of all of its kind that fit with it.

        None that is left out and due sooner is made late by one that is taken.

        Args:
            head: The job that is worked on.
            slots: All jobs that wait, the most urgent first.
            now_s: When the call begins.
            longest_s: A call should not take longer, as far as one window allows.
        """
        cost = head.step.cost
        limit = self._affordable(head, cost, longest_s)
        head_s = self._piece_s(head)
        leads = any(slot.job is head and slot.begins_in == 0 for slot in slots)
        pieces = [head.take(limit, now_s)]
        effort = pieces[0].effort
        # What is late anyway keeps nobody out of its call.
        due_s = head.due_s if now_s + head_s <= head.due_s else math.inf
        room = limit - len(pieces[0].windows)
        spare_s, is_behind_head = math.inf, False
        for slot in slots:
            job = slot.job
            if job is head:
                is_behind_head = True
                continue
            share = min(room, job.windows_left) / max(1, job.windows_left)
            work_s = cost.work_s * share * job.left.work
            grown = Effort(effort.work + share * job.left.work, effort.calls)
            is_planned = leads and slot.begins_in == 0  # the slack of the others counts it already
            fits = (
                room > 0
                and job.kind == head.kind
                and (is_planned or work_s <= spare_s)
                and now_s + cost.longest_s(grown) <= min(due_s, job.due_s)
            )
            if not fits:
                # It waits for this call: whoever is due later may add to that what it can spare.
                slack_s = slot.slack_s - (0.0 if is_behind_head else head_s)
                spare_s = min(spare_s, slack_s)
                continue
            piece = job.take(room, now_s)
            pieces.append(piece)
            effort = Effort(effort.work + piece.effort.work, effort.calls)
            due_s = min(due_s, job.due_s)
            room -= len(piece.windows)
            if not is_planned:
                spare_s -= work_s
        return pieces

    def _piece_s(self, job: Job) -> float:
        windows = min(job.windows_left, self._batch_limit)
        work = job.left.work * windows / max(1, job.windows_left)
        cost = job.step.cost
        return cost.longest_s(Effort(work, self._passes(job)))

    def _passes(self, job: Job) -> int:
        """How often a job goes through the model in one call of it."""
        return -(-job.left.calls // max(1, -(-job.windows_left // self._batch_limit)))

    def _affordable(self, job: Job, cost: CostModel, longest_s: float) -> int:
        """Windows of a job that a call of at most `longest_s` holds, at least one."""
        if math.isinf(longest_s):
            return self._batch_limit
        window_s = cost.work_s * job.left.work / max(1, job.windows_left)
        calls = -(-job.windows_left // self._batch_limit)
        spare_s = longest_s - cost.call_s * job.left.calls / max(1, calls)
        if window_s <= 0 or spare_s >= window_s * self._batch_limit:
            return self._batch_limit
        return max(1, math.floor(spare_s / window_s + _ROUNDING))
