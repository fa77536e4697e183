"""Finish times follow from costs, and the order of due times is the one that meets most."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kpi.window import KpiWindow
from model.predictor import Rung
from service.budget import Deadline
from service.engine.cost import CostModel, Effort, Measured
from service.engine.job import Ask, Job, Priority
from service.engine.ladder import Ladder, Step, extents_of
from service.engine.schedule import Schedule
from tests.service.fakes import RepeatLast

CALL_S, WINDOW_S = 0.003, 0.001
STEPS = 999  # with a horizon of 1, a window is a thousand samples


def known_step(rounds: int = 1) -> Step:
    """One of known cost; after some rounds its calls are known to take no longer."""
    measured = [Measured(Effort(n, 1), CALL_S + WINDOW_S * n) for n in (1.0, 4.0, 16.0)]
    measured *= rounds
    return Step(Rung.FULL, RepeatLast(), cost=CostModel(measured))


STEP = known_step()
SURE = known_step(rounds=10)


def make_job(
    loop, count, due_s, *, horizon=1, queued_s=0.0, priority=Priority.CONTROL, limit=4, step=STEP
):
    window = KpiWindow("a", ("A",), 0, 1000, np.ones((1, STEPS), dtype=np.float32))
    ask = Ask(horizon, (0.5,), Deadline(0.0, 1000 * due_s), priority=priority)
    result = loop.create_future()
    return Job(ask, Ladder((step,)), [window] * count, due_s, step, result, queued_s, limit)


class NoLoop:
    """Makes results that nobody waits for."""

    def create_future(self):
        return None


@pytest.fixture
def loop():
    return NoLoop()


@pytest.fixture
def schedule():
    return Schedule(batch_limit=4)


def test_jobs_of_one_kind_share_calls(loop, schedule):
    jobs = [make_job(loop, 2, 1.0 + i) for i in range(3)]
    ends = [slot.finish_s for slot in schedule.plan(jobs, 10.0).slots]
    both = 10 + CALL_S + 4 * WINDOW_S
    # The third one does not fit into the call of the first two.
    assert ends == pytest.approx([both, both, both + CALL_S + 2 * WINDOW_S])


def test_a_job_shares_no_call_where_that_makes_one_late_that_is_in_it(loop, schedule):
    urgent = make_job(loop, 1, 1.3 * (CALL_S + WINDOW_S))
    ends = [slot.finish_s for slot in schedule.plan([urgent, make_job(loop, 3, 9.0)], 0.0).slots]
    assert ends == pytest.approx([CALL_S + WINDOW_S, 2 * CALL_S + 4 * WINDOW_S])


def test_a_job_shares_no_call_where_that_makes_one_late_that_comes_after_it(loop, schedule):
    first = make_job(loop, 1, 0.5)
    own_s = CALL_S + WINDOW_S
    other = make_job(loop, 1, 0.0, horizon=2)
    other.due_s = 2 * own_s + 0.25 * own_s + 0.0011
    first.due_s = other.due_s - 0.001
    slots = schedule.plan([first, other, make_job(loop, 3, 9.0)], 0.0).slots
    assert [slot.begins_in for slot in slots] == [0, 1, 2]
    other.due_s += 3 * WINDOW_S
    first.due_s += 3 * WINDOW_S
    slots = schedule.plan([first, other, make_job(loop, 3, 9.0)], 0.0).slots
    assert [slot.begins_in for slot in slots] == [0, 1, 0]


@given(
    dues=st.lists(st.floats(0.01, 0.3), min_size=1, max_size=12),
    counts=st.lists(st.integers(1, 9), min_size=12, max_size=12),
    horizons=st.lists(st.integers(1, 2), min_size=12, max_size=12),
)
def test_what_one_more_would_make_of_a_plan_is_what_it_makes_of_it(dues, counts, horizons):
    loop = NoLoop()
    schedule = Schedule(batch_limit=4)
    *jobs, last = [
        make_job(loop, n, due, horizon=h) for due, n, h in zip(dues, counts, horizons, strict=False)
    ]
    slack_s = schedule.plan(jobs, 0.0).slack_with_s(last)
    slots = schedule.plan([*jobs, last], 0.0).slots
    place = next(index for index, slot in enumerate(slots) if slot.job is last)
    least_s = min(slot.slack_s for slot in slots[place:])
    assert slack_s <= least_s + 1e-9


def test_jobs_of_another_kind_pay_for_their_own_call(loop, schedule):
    jobs = [make_job(loop, 1, 1.0), make_job(loop, 1, 2.0, horizon=2)]
    *_, last = schedule.plan(jobs, 0.0).slots
    assert last.finish_s == pytest.approx(2 * (CALL_S + WINDOW_S), rel=0.01)


def test_batch_jobs_come_after_all_others(loop, schedule):
    batch = make_job(loop, 1, 0.1, priority=Priority.BATCH)
    control = make_job(loop, 1, 5.0)
    assert [slot.job for slot in schedule.plan([batch, control], 0.0).slots] == [control, batch]


@given(
    counts=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    dues=st.lists(st.floats(0.01, 0.2), min_size=4, max_size=4),
)
def test_if_any_order_meets_all_the_order_of_due_times_does(counts, dues):
    loop = NoLoop()
    schedule = Schedule(batch_limit=4)
    # Each of a kind of its own, so that the order decides nothing about their costs.
    jobs = [
        make_job(loop, n, d, horizon=1 + i)
        for i, (n, d) in enumerate(zip(counts, dues, strict=False))
    ]
    slots = schedule.plan(jobs, 0.0).slots
    by_due = all(slot.finish_s <= slot.job.due_s for slot in slots)
    own = {id(job): schedule.own_s(job) for job in jobs}
    any_order = False
    for order in itertools.permutations(jobs):
        ends = itertools.accumulate(own[id(job)] for job in order)
        any_order |= all(end <= job.due_s for end, job in zip(ends, order, strict=True))
    assert by_due == any_order


def test_a_call_takes_all_of_a_kind_up_to_the_limit(loop, schedule):
    jobs = [make_job(loop, 1, 1.0, queued_s=i) for i in range(6)]
    pieces = schedule.batch(jobs[0], schedule.plan(jobs, 0.0).slots, 0.0)
    assert sum(len(piece.windows) for piece in pieces) == 4


def test_a_call_grows_only_as_far_as_all_in_it_are_in_time(loop, schedule):
    urgent = make_job(loop, 1, (CALL_S + 2 * WINDOW_S) * 1.3)
    others = [make_job(loop, 1, 9.0) for _ in range(3)]
    pieces = schedule.batch(urgent, schedule.plan([urgent, *others], 0.0).slots, 0.0)
    assert len(pieces) == 2


def test_a_call_of_batch_jobs_is_short(loop):
    schedule = Schedule(batch_limit=32)
    job = make_job(loop, 32, 9.0, priority=Priority.BATCH, limit=32)
    (piece,) = schedule.batch(job, schedule.plan([job], 0.0).slots, 0.0, longest_s=0.010)
    assert len(piece.windows) == 7
    (piece,) = schedule.batch(job, schedule.plan([job], 0.0).slots, 0.0, longest_s=0.001)
    assert len(piece.windows) == 1


def test_a_ladder_is_in_the_order_of_its_rungs():
    model = RepeatLast()
    with pytest.raises(ValueError, match="in the order"):
        Ladder((Step(Rung.SHORT, model), Step(Rung.FULL, model)))
    with pytest.raises(ValueError, match="at least one"):
        Ladder(())


def test_a_horizon_of_several_passes_takes_the_context_several_times():
    window = KpiWindow("a", ("A", "B"), 0, 1000, np.ones((2, 600), dtype=np.float32))
    step = Step(Rung.FULL, RepeatLast(), most_steps=500, pass_steps=100)
    assert step.effort(extents_of([window]), 100) == Effort(1.2, 1)
    assert step.effort(extents_of([window]), 250) == Effort(3.5, 3)


class Simulated:
    """A model whose calls take what is expected of them, and the jobs that are accepted for it."""

    def __init__(self, limit):
        self.schedule = Schedule(limit)
        self.now_s = self.free_s = 0.0
        self.waiting: list[Job] = []
        self.due: list[Job] = []

    def offer(self, job):
        """Accept a job, if it and all others are in time then; whether they are."""
        others = [j for j in self.waiting if j.ask.priority is Priority.CONTROL]
        free_s = max(self.free_s, self.now_s)
        if self.schedule.plan(others, free_s).slack_with_s(job) < 0:
            return False
        self.waiting.append(job)
        self.due.append(job)
        return True

    def run_until(self, until_s):
        """Make all calls that begin before."""
        while self.waiting and max(self.free_s, self.now_s) < until_s:
            begin_s = max(self.free_s, self.now_s)
            slots = self.schedule.plan(self.waiting, begin_s).slots
            head = self.schedule.first(slots)
            pieces = self.schedule.batch(head, slots, begin_s)
            windows = [window for piece in pieces for window in piece.windows]
            assert len(windows) <= self.schedule._batch_limit
            self.free_s = begin_s + SURE.cost.estimate_s(
                SURE.effort(extents_of(windows), head.ask.horizon)
            )
            for piece in pieces:
                job = piece.job
                if not job.windows_left:
                    self.waiting.remove(job)
                    assert self.free_s <= job.due_s + 1e-9, "accepted, and late"
        self.now_s = until_s


@given(
    st.lists(
        st.tuples(
            st.floats(0.0, 0.02),  # pause before it
            st.integers(1, 9),  # windows
            st.floats(0.004, 0.2),  # budget
            st.integers(1, 2),  # horizon: two kinds
        ),
        max_size=30,
    )
)
@example(  # the smallest first left the others in one call more
    [
        (0.0, 1, 0.125, 1),
        (0.0, 6, 0.125, 1),
        (0.0, 6, 0.046875, 2),
        (0.0, 6, 0.048828125, 2),
        (0.0, 7, 0.041015625, 2),
    ]
)
def test_whatever_is_accepted_is_in_time_where_calls_take_what_is_expected(offers):
    loop = NoLoop()
    it = Simulated(4)
    for pause_s, count, budget_s, horizon in offers:
        it.run_until(it.now_s + pause_s)
        due_s = it.now_s + budget_s
        it.offer(make_job(loop, count, due_s, horizon=horizon, queued_s=it.now_s, step=SURE))
    it.run_until(math.inf)
