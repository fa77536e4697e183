"""Finish times follow from costs, and the order of due times is the one that meets most."""

from __future__ import annotations

import asyncio
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpi.window import KpiWindow
from model.predictor import Rung
from service.budget import Deadline
from service.engine.cost import CostModel, Effort, Measured
from service.engine.job import Ask, Job, Priority
from service.engine.ladder import Ladder, Step
from service.engine.schedule import Schedule, effort_of
from tests.service.fakes import RepeatLast

CALL_S, WINDOW_S = 0.003, 0.001
STEPS = 999  # with a horizon of 1, a window is a thousand samples


def known_step() -> Step:
    measured = [Measured(Effort(n, 1), CALL_S + WINDOW_S * n) for n in (1.0, 4.0, 16.0)]
    return Step(Rung.FULL, RepeatLast(), cost=CostModel(measured))


STEP = known_step()
LADDER = Ladder((STEP,))


def make_job(loop, count, due_s, *, horizon=1, queued_s=0.0, priority=Priority.CONTROL):
    window = KpiWindow("a", ("A",), 0, 1000, np.ones((1, STEPS), dtype=np.float32))
    ask = Ask(horizon, (0.5,), Deadline(0.0, 1000 * due_s), priority=priority)
    return Job(ask, LADDER, [window] * count, due_s, STEP, loop.create_future(), queued_s)


@pytest.fixture
def loop():
    made = asyncio.new_event_loop()
    yield made
    made.close()


@pytest.fixture
def schedule():
    return Schedule(batch_limit=4)


def test_jobs_of_one_kind_share_calls(loop, schedule):
    jobs = [make_job(loop, 2, 1.0 + i) for i in range(3)]
    ends = [slot.finish_s for slot in schedule.slots(jobs, 10.0)]
    first = CALL_S + 2 * WINDOW_S
    # The third one does not fit into the call of the first two.
    assert ends == pytest.approx([10 + first, 10 + first + 2 * WINDOW_S, 10 + 2 * first + 0.002])


def test_jobs_of_another_kind_pay_for_their_own_call(loop, schedule):
    jobs = [make_job(loop, 1, 1.0), make_job(loop, 1, 2.0, horizon=2)]
    *_, last = schedule.slots(jobs, 0.0)
    assert last.finish_s == pytest.approx(2 * (CALL_S + WINDOW_S), rel=0.01)


def test_batch_jobs_come_after_all_others(loop, schedule):
    batch = make_job(loop, 1, 0.1, priority=Priority.BATCH)
    control = make_job(loop, 1, 5.0)
    assert [slot.job for slot in schedule.slots([batch, control], 0.0)] == [control, batch]


@given(
    counts=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    dues=st.lists(st.floats(0.01, 0.2), min_size=4, max_size=4),
)
def test_if_any_order_meets_all_the_order_of_due_times_does(counts, dues):
    loop = asyncio.new_event_loop()
    schedule = Schedule(batch_limit=4)
    # Each of a kind of its own, so that the order decides nothing about their costs.
    jobs = [
        make_job(loop, n, d, horizon=1 + i)
        for i, (n, d) in enumerate(zip(counts, dues, strict=False))
    ]
    slots = schedule.slots(jobs, 0.0)
    by_due = all(slot.finish_s <= slot.job.due_s for slot in slots)
    own = {id(job): schedule.own_s(job) for job in jobs}
    any_order = False
    for order in itertools.permutations(jobs):
        ends = itertools.accumulate(own[id(job)] for job in order)
        any_order |= all(end <= job.due_s for end, job in zip(ends, order, strict=True))
    assert by_due == any_order
    loop.close()


def test_a_call_takes_all_of_a_kind_up_to_the_limit(loop, schedule):
    jobs = [make_job(loop, 1, 1.0, queued_s=i) for i in range(6)]
    pieces = schedule.batch(jobs[0], schedule.slots(jobs, 0.0), 0.0)
    assert sum(len(piece.windows) for piece in pieces) == 4
    effort = effort_of(pieces)
    assert effort.work == pytest.approx(4.0)
    assert effort.calls == 1


def test_a_call_grows_only_as_far_as_all_in_it_are_in_time(loop, schedule):
    urgent = make_job(loop, 1, (CALL_S + 2 * WINDOW_S) * 1.3)
    others = [make_job(loop, 1, 9.0) for _ in range(3)]
    pieces = schedule.batch(urgent, schedule.slots([urgent, *others], 0.0), 0.0)
    assert len(pieces) == 2


def test_a_call_of_batch_jobs_is_short(loop):
    schedule = Schedule(batch_limit=32)
    job = make_job(loop, 32, 9.0, priority=Priority.BATCH)
    (piece,) = schedule.batch(job, schedule.slots([job], 0.0), 0.0, longest_s=0.010)
    assert len(piece.windows) == 7
    (piece,) = schedule.batch(job, schedule.slots([job], 0.0), 0.0, longest_s=0.001)
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
    assert step.effort([window], 100) == Effort(1.2, 1)
    assert step.effort([window], 250) == Effort(3.5, 3)
