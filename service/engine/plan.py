"""In which calls requests would be answered, taken in the order of their due times.

Jobs of one kind share calls: a job goes into a call that is planned already, as far as that has
room, and as long as what it adds makes none late that comes with it or after it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from service.engine.cost import CostModel
from service.engine.job import Job, Priority


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a job stands in the order of due times.

    Attributes:
        job: Which one.
        finish_s: When it is expected to be finished.
        reserve_s: What its call may take longer than that.
        begins_in: Which run of calls its first windows are in, counted from the first.
    """

    job: Job
    finish_s: float
    reserve_s: float
    begins_in: int

    @property
    def slack_s(self) -> float:
        """How much later it could be finished and still be sure to be in time."""
        return self.job.due_s - self.finish_s - self.reserve_s


@dataclass(slots=True)
class _Run:
    """Calls of one kind, one after the other.

    Attributes:
        finish_s: When the last one is expected to be finished.
        slack_s: The least of the jobs that end in it.
        call_s: What the last one is expected to take.
        room: Windows that it can still take.
    """

    finish_s: float
    slack_s: float
    call_s: float
    room: int


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a job would come.

    Attributes:
        shared: Windows of it that go into a run that is planned already.
        run: That run, counted from the first; meaningless where there are none.
        shared_s: What they add to it, and to all that come after it.
        reserved_s: What they may add to it.
        own_calls: Calls of its own, after all that is planned.
        own_s: What these take.
        call_s: What the last one of them takes.
        room: Windows that the last of them can still take.
        reserve_s: What its last call may take longer than expected.
        finish_s: When it would be finished.
        slack_s: The least of it and of those that it delays.
    """

    shared: int
    run: int
    shared_s: float
    reserved_s: float
    own_calls: int
    own_s: float
    call_s: float
    room: int
    reserve_s: float
    finish_s: float
    slack_s: float


class Plan:
    """Jobs in the order of their due times, and the calls that they are in.

    Args:
        batch_limit: Windows in one call.
        free_s: When the model is free.
        jobs: Planned from the start, in any order.
    """

    def __init__(self, batch_limit: int, free_s: float, jobs: Iterable[Job] = ()) -> None:
        self._batch_limit = batch_limit
        self._free_s = free_s
        self._end_s = free_s
        self._runs: list[_Run] = []
        self._open: dict[Hashable, int] = {}
        self._planned: list[tuple[Job, _Place, int]] = []
        for job in sorted(jobs, key=urgency):
            self._add(job)

    @property
    def free_s(self) -> float:
        """When the model is free."""
        return self._free_s

    @property
    def slots(self) -> Sequence[Slot]:
        """All jobs, the most urgent first."""
        slots = []
        for job, place, ends_in in self._planned:
            run = self._runs[ends_in]
            # Of the call as it is now, with all that came into it later.
            reserve_s = job.step.cost.reserve_s(run.call_s)
            begins_in = place.run if place.shared else ends_in
            slots.append(Slot(job, run.finish_s, reserve_s, begins_in))
        return slots

    def slack_with_s(self, job: Job) -> float:
        """The least slack of one job more, and of those that it would delay."""
        if self._is_last(job):
            return self._place(job).slack_s
        others = (planned for planned, *_ in self._planned)
        slots = Plan(self._batch_limit, self._free_s, (*others, job)).slots
        place = next(index for index, slot in enumerate(slots) if slot.job is job)
        return min(slot.slack_s for slot in slots[place:])

    def try_add(self, job: Job) -> bool:
        """Plan one job more, if it comes last; whether it does."""
        if not self._is_last(job):
            return False
        self._add(job)
        return True

    def _is_last(self, job: Job) -> bool:
        return not self._planned or urgency(self._planned[-1][0]) <= urgency(job)

    def _add(self, job: Job) -> None:
        place = self._place(job)
        if place.shared:
            for run in self._runs[place.run :]:
                run.finish_s += place.shared_s
                run.slack_s -= place.shared_s
            shared = self._runs[place.run]
            shared.slack_s -= place.reserved_s - place.shared_s
            shared.call_s += place.shared_s
            shared.room -= place.shared
        self._end_s += place.shared_s + place.own_s
        slack_s = job.due_s - place.finish_s - place.reserve_s
        if place.own_calls or not self._runs:
            self._open[job.kind] = len(self._runs)
            self._runs.append(_Run(self._end_s, slack_s, place.call_s, place.room))
            ends_in = len(self._runs) - 1
        else:
            ends_in = place.run
            run = self._runs[ends_in]
            run.slack_s = min(run.slack_s, slack_s)
        self._planned.append((job, place, ends_in))

    def _place(self, job: Job) -> _Place:
        windows, cost = job.windows_left, job.step.cost
        calls = -(-windows // self._batch_limit)
        window_s = cost.work_s * job.left.work / max(1, windows)
        call_s = cost.call_s * job.left.calls / max(1, calls)
        run = self._open.get(job.kind, 0)
        shared = min(self._runs[run].room, windows) if job.kind in self._open else 0
        least_s, reserved_s = math.inf, 0.0
        if shared:
            # All in the call wait for what it may take longer, those after it for what it takes.
            reserved_s = self._reserved_s(self._runs[run], cost, shared * window_s)
            added_s = [reserved_s] + [shared * window_s] * (len(self._runs) - run - 1)
            slacks_s = [each.slack_s for each in self._runs[run:]]
            left_s = [slack_s - s for slack_s, s in zip(slacks_s, added_s, strict=True)]
            least_s = min(left_s)
            # What is late anyway keeps nobody out of a call.
            if any(left < 0 <= slack for left, slack in zip(left_s, slacks_s, strict=True)):
                shared, reserved_s, least_s = 0, 0.0, math.inf
        own = windows - shared
        own_calls = -(-own // self._batch_limit)
        last = own - (own_calls - 1) * self._batch_limit if own_calls else 0
        last_s = call_s + last * window_s if own_calls else 0.0
        shared_s = shared * window_s
        own_s = own * window_s + own_calls * call_s
        if own_calls or not shared:
            finish_s, ends_s = self._end_s + shared_s + own_s, last_s
        else:
            finish_s = self._runs[run].finish_s + shared_s
            ends_s = self._runs[run].call_s + shared_s
        reserve_s = cost.reserve_s(ends_s)
        return _Place(
            shared=shared,
            run=run,
            shared_s=shared_s,
            reserved_s=reserved_s,
            own_calls=own_calls,
            own_s=own_s,
            call_s=last_s,
            room=own_calls * self._batch_limit - own,
            reserve_s=reserve_s,
            finish_s=finish_s,
            slack_s=min(least_s, job.due_s - finish_s - reserve_s),
        )

    @staticmethod
    def _reserved_s(run: _Run, cost: CostModel, added_s: float) -> float:
        """What is added to the last call of a run, and to what that may take longer."""
        before_s = run.call_s + cost.reserve_s(run.call_s)
        after_s = run.call_s + added_s + cost.reserve_s(run.call_s + added_s)
        return after_s - before_s


def urgency(job: Job) -> tuple[bool, float]:
    """Sorts jobs by their due times, those for control before those of batches."""
    return job.ask.priority is Priority.BATCH, job.due_s
