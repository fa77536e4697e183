"""Which rung answers, who is refused at the door, and whose answer waits for whose."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from kpi.window import KpiWindow
from model.predictor import Rung
from service.budget import Deadline
from service.engine import Ask, Engine, Ladder, Priority, Step
from service.errors import BudgetError, DeadlineError, OverloadedError
from service.metrics import Metrics
from tests.service.fakes import FakeClock, RepeatLast

pytestmark = pytest.mark.anyio

LEVELS = (0.1, 0.5, 0.9)
COSTS_S = {Rung.FULL: 0.1, Rung.SHORT: 0.02, Rung.BASELINE: 0.001}


def windows(prefix: str, count: int = 1) -> list[KpiWindow]:
    values = np.ones((1, 4), dtype=np.float32)
    return [KpiWindow(f"{prefix}{i}", ("A",), 0, 1000, values) for i in range(count)]


class Rungs:
    """An engine of three rungs, of which each call takes a known time of the fake clock."""

    def __init__(self, rungs=tuple(Rung), batch_limit=4, queue_limit=64):
        self.loop = asyncio.get_running_loop()
        self.offered = threading.Event()
        self.clock = FakeClock()
        self.registry = CollectorRegistry()
        self.models = {rung: RepeatLast() for rung in rungs}
        self.costs_s = dict(COSTS_S)
        for rung, model in self.models.items():
            model.on_call = partial(self.spend, rung)
        self.ladder = Ladder(tuple(Step(rung, model) for rung, model in self.models.items()))
        self.engine = Engine(
            clock=self.clock,
            metrics=Metrics(self.registry, self.clock, "near-rt"),
            queue_limit=queue_limit,
            warm_up=windows("warm-up"),
            batch_limit=batch_limit,
        )

    def spend(self, rung):
        self.clock.advance(self.costs_s[rung])

    def ask(self, budget_ms, least=Rung.BASELINE, priority=Priority.CONTROL):
        return Ask(2, LEVELS, Deadline(self.clock.monotonic_s(), budget_ms), least, priority)

    def submit(self, many, budget_ms, least=Rung.BASELINE, priority=Priority.CONTROL):
        return self.engine.submit(many, self.ask(budget_ms, least, priority), self.ladder)

    async def occupy(self):
        """Hold the forecaster with a request."""
        self.models[Rung.FULL].gate.clear()
        answer = self.submit(windows("holder"), 1e9)
        assert await asyncio.to_thread(self.models[Rung.FULL].entered.acquire, timeout=30)
        return answer

    def asked(self, rung):
        return [cells for cells, *_ in self.models[rung].calls]


@asynccontextmanager
async def rungs(**options):
    made = Rungs(**options)
    await made.engine.learn(made.ladder)
    made.engine.start()
    for model in made.models.values():
        model.forget_warm_up()
    try:
        yield made
    finally:
        for model in made.models.values():
            model.gate.set()
        await made.engine.drain(30)


@pytest.mark.parametrize(
    ("budget_ms", "rung"), [(1000, Rung.FULL), (60, Rung.SHORT), (6, Rung.BASELINE)]
)
async def test_the_best_rung_that_fits_the_budget_answers(budget_ms, rung):
    async with rungs() as it:
        await it.submit(windows("a"), budget_ms)
        assert it.asked(rung) == [["a0"]]


async def test_a_request_that_demands_more_than_fits_is_refused_with_what_it_would_take():
    async with rungs() as it:
        with pytest.raises(BudgetError, match=r"rung full .* takes 10\d\.\d ms") as caught:
            it.submit(windows("a"), 60, Rung.FULL)
        assert caught.value.retry_after_s == 1
        assert not it.models[Rung.SHORT].calls


async def test_the_baseline_answers_while_the_forecaster_is_busy():
    async with rungs() as it:
        holder = await it.occupy()
        answer = await it.submit(windows("a"), 10)
        assert [forecast.cell for forecast in answer.forecasts] == ["a0"]
        assert not holder.done()
        assert it.asked(Rung.BASELINE) == [["a0"]]


async def test_what_waits_is_counted_before_a_request_is_accepted():
    async with rungs() as it:
        holder = await it.occupy()
        kept = [it.submit(windows(f"k{i}", 4), 300, Rung.FULL) for i in range(1)]
        with pytest.raises(BudgetError):
            it.submit(windows("late", 4), 300, Rung.FULL)
        it.models[Rung.FULL].gate.set()
        await asyncio.gather(holder, *kept)


async def test_a_request_that_would_make_an_accepted_one_late_is_not_accepted():
    async with rungs() as it:
        holder = await it.occupy()
        bulk = it.submit(windows("bulk", 8), 400, Rung.FULL)
        # Alone it would be in time, but it is due before the other one, which has no slack left.
        with pytest.raises(BudgetError):
            it.submit(windows("small", 4), 250, Rung.FULL)
        it.models[Rung.FULL].gate.set()
        await asyncio.gather(holder, bulk)


async def test_a_small_request_goes_first_where_that_makes_none_late():
    async with rungs() as it:
        holder = await it.occupy()
        bulk = it.submit(windows("bulk", 8), 10_000, Rung.FULL)
        small = it.submit(windows("small", 2), 20_000, Rung.FULL)
        it.models[Rung.FULL].gate.set()
        await asyncio.gather(holder, bulk, small)
        assert it.asked(Rung.FULL)[1][:2] == ["small0", "small1"]


async def test_the_request_that_is_due_first_goes_first_where_the_small_one_would_make_it_late():
    async with rungs() as it:
        holder = await it.occupy()
        urgent = it.submit(windows("urgent", 8), 400, Rung.FULL)
        small = replace(it.ask(20_000, Rung.FULL), horizon=3)  # it cannot share a call
        later = it.engine.submit(windows("small"), small, it.ladder)
        it.models[Rung.FULL].gate.set()
        await asyncio.gather(holder, urgent, later)
        assert it.asked(Rung.FULL)[-1] == ["small0"]


async def test_batch_requests_wait_for_control_requests():
    async with rungs() as it:
        holder = await it.occupy()
        batch = it.submit(windows("batch", 4), 1e6, Rung.FULL, Priority.BATCH)
        control = it.submit(windows("control", 4), 1e6, Rung.FULL)
        it.models[Rung.FULL].gate.set()
        await asyncio.gather(holder, batch, control)
        assert it.asked(Rung.FULL)[1] == [f"control{i}" for i in range(4)]


async def test_control_requests_are_accepted_whatever_batch_requests_wait():
    async with rungs() as it:
        holder = await it.occupy()
        batch = [it.submit(windows(f"b{i}", 40), 1e6, Rung.FULL, Priority.BATCH) for i in range(3)]
        control = it.submit(windows("control"), 300, Rung.FULL)
        it.models[Rung.FULL].gate.set()
        assert (await control).forecasts
        await asyncio.gather(holder, *batch)


async def test_while_a_call_takes_longer_than_was_promised_the_baseline_answers_who_waits_for_it():
    async with rungs() as it:
        holder = await it.occupy()
        answer = it.submit(windows("a"), 350)
        it.clock.advance(0.2)
        await answer
        assert it.asked(Rung.BASELINE) == [["a0"]]
        assert not holder.done()
        it.models[Rung.FULL].gate.set()
        await holder


async def test_a_request_that_would_be_late_by_now_is_answered_by_a_lesser_rung():
    async with rungs(rungs=(Rung.FULL, Rung.SHORT)) as it:
        holder = await it.occupy()
        answer = it.submit(windows("a"), 350)
        it.clock._s += 0.16  # the model takes longer than was expected
        it.models[Rung.FULL].gate.set()
        await answer
        await holder
        assert it.asked(Rung.SHORT) == [["a0"]]


async def test_a_request_that_cannot_be_in_time_by_now_is_not_worked_on():
    async with rungs() as it:
        holder = await it.occupy()
        answer = it.submit(windows("a"), 350, Rung.FULL)
        it.clock._s += 0.16
        it.models[Rung.FULL].gate.set()
        with pytest.raises(DeadlineError):
            await answer
        await holder
        assert it.asked(Rung.FULL) == [["holder0"]]


async def test_the_door_refuses_what_cannot_be_in_time_before_it_is_read():
    async with rungs() as it:
        holder = await it.occupy()
        kept = it.submit(windows("k", 4), 300, Rung.FULL)
        deadline = Deadline(it.clock.monotonic_s(), 90)
        with pytest.raises(BudgetError):
            it.engine.check_door(it.ladder, deadline, Rung.FULL, Priority.CONTROL)
        it.engine.check_door(it.ladder, deadline, Rung.BASELINE, Priority.CONTROL)
        it.models[Rung.FULL].gate.set()
        await asyncio.gather(holder, kept)


def foretold(it, budget_ms, samples):
    """As a request asks that was taken to hold so many samples when it was let in."""
    return replace(it.ask(budget_ms, Rung.FULL), foretold_samples=samples)


async def test_the_door_counts_on_calls_that_a_request_like_the_ones_before_it_would_share():
    async with rungs() as it:
        holder = await it.occupy()
        kept = it.engine.submit(windows("k"), foretold(it, 290, 4), it.ladder)
        deadline = it.ask(290).deadline
        it.engine.check_door(it.ladder, deadline, Rung.FULL, Priority.CONTROL, 4)
        with pytest.raises(BudgetError):
            it.engine.check_door(it.ladder, deadline, Rung.FULL, Priority.CONTROL, 5)
        it.models[Rung.FULL].gate.set()
        await asyncio.gather(holder, kept)


async def test_the_door_refuses_what_is_like_a_request_that_was_read_and_refused():
    async with rungs() as it:
        holder = await it.occupy()
        ask = foretold(it, 290, 4)
        kept = it.engine.submit(windows("k", 2), ask, it.ladder)
        # One window more shares a call with those, three take another one.
        it.engine.check_door(it.ladder, ask.deadline, Rung.FULL, Priority.CONTROL, 4)
        with pytest.raises(BudgetError):
            it.engine.submit(windows("a", 3), ask, it.ladder)
        with pytest.raises(BudgetError):
            it.engine.check_door(it.ladder, ask.deadline, Rung.FULL, Priority.CONTROL, 4)
        it.models[Rung.FULL].gate.set()
        await asyncio.gather(holder, kept)
        later = it.ask(1_000).deadline
        it.engine.check_door(it.ladder, later, Rung.FULL, Priority.CONTROL, 4)


async def test_a_rung_that_was_slow_for_a_while_is_soon_tried_again_without_a_request():
    async with rungs(rungs=(Rung.FULL,)) as it:
        it.costs_s[Rung.FULL] = 50.0
        for _ in range(5):
            await it.submit(windows("a"), 1e9)
            it.models[Rung.FULL].entered.acquire()
        it.costs_s[Rung.FULL] = 0.1
        refused = 0
        for _ in range(200):
            it.clock.advance(1)
            try:
                await it.submit(windows("b"), 500)
                break
            except BudgetError:
                refused += 1
                assert await asyncio.to_thread(it.models[Rung.FULL].entered.acquire, timeout=30)
        assert 0 < refused < 20


async def test_one_slow_call_is_not_believed_to_be_the_rule():
    async with rungs(rungs=(Rung.FULL,)) as it:
        it.costs_s[Rung.FULL] = 50.0
        await it.submit(windows("a"), 1e9)
        it.costs_s[Rung.FULL] = 0.1
        await it.submit(windows("b"), 1000)


async def test_time_until_the_event_loop_hears_of_an_answer_is_kept_back():
    async with rungs(rungs=(Rung.FULL,)) as it:
        await it.submit(windows("a"), 200, Rung.FULL)
        it.engine._lags.append(0.5, it.clock.monotonic_s())
        for late_ms, taken in ((150, False), (170, True)):  # of 170 ms a quarter is kept back
            if taken:
                await it.submit(windows("b"), late_ms)
            else:
                with pytest.raises(BudgetError):
                    it.submit(windows("b"), late_ms)


async def test_the_cost_of_each_rung_is_shown():
    async with rungs() as it:
        for rung, cost_s in COSTS_S.items():
            per_call = it.registry.get_sample_value(
                "rancast_inference_cost_seconds",
                {"model": "fake", "version": "1.2.3", "rung": rung.value, "per": "call"},
            )
            assert per_call == pytest.approx(cost_s, rel=0.05)


async def test_another_ladder_answers_what_has_not_been_begun():
    async with rungs() as it:
        holder = await it.occupy()
        waiting = it.submit(windows("a"), 1e6)
        other = RepeatLast()
        ladder = Ladder((Step(Rung.FULL, other),))
        it.engine.replace(it.ladder, ladder)
        it.models[Rung.FULL].gate.set()
        await asyncio.gather(holder, waiting)
        assert other.calls[-1][0] == ["a0"]
        assert it.asked(Rung.FULL) == [["holder0"]]


async def test_a_request_is_answered_by_the_ladder_that_it_was_given_whatever_others_answer():
    async with rungs() as it:
        other = RepeatLast()
        ladder = Ladder((Step(Rung.FULL, other),))
        await it.engine.learn(ladder, on_the_spot)
        holder = await it.occupy()
        ask = it.ask(1e6)
        asked = [
            it.engine.submit(windows(name), ask, which)
            for name, which in zip("abcd", [it.ladder, ladder] * 2, strict=True)
        ]
        it.models[Rung.FULL].gate.set()
        await asyncio.gather(holder, *asked)
        assert it.asked(Rung.FULL) == [["holder0"], ["a0", "c0"]]
        assert other.calls[-1][0] == ["b0", "d0"]


async def test_what_is_learnt_elsewhere_does_not_use_the_threads_that_answer():
    async with rungs() as it:
        holder = await it.occupy()
        other = RepeatLast()
        # The thread that answers is busy: it would not come back.
        await it.engine.learn(Ladder((Step(Rung.FULL, other),)), on_the_spot)
        assert other.calls
        assert not holder.done()
        it.models[Rung.FULL].gate.set()
        await holder


async def on_the_spot(step, windows, ask):
    return step.predictor.predict(windows, ask.horizon, ask.levels)


async def test_batch_requests_take_no_permits_of_control_requests():
    async with rungs(queue_limit=2) as it:
        holder = await it.occupy()
        batch = [it.submit(windows(f"b{i}"), 1e6, Rung.FULL, Priority.BATCH) for i in range(2)]
        with pytest.raises(OverloadedError, match="2 requests of priority batch"):
            it.submit(windows("b"), 1e6, Rung.FULL, Priority.BATCH)
        control = it.submit(windows("control"), 1e6, Rung.FULL)
        it.models[Rung.FULL].gate.set()
        await asyncio.gather(holder, control, *batch)


async def test_a_probe_is_time_that_is_not_promised_to_others():
    async with rungs(rungs=(Rung.FULL,)) as it:
        model = it.models[Rung.FULL]
        it.clock.advance(1)
        model.gate.clear()
        with pytest.raises(BudgetError):
            it.submit(windows("a"), 50)
        assert await asyncio.to_thread(model.entered.acquire, timeout=30)
        with pytest.raises(BudgetError):  # alone it would be in time
            it.submit(windows("b"), 150)
        model.gate.set()


async def test_a_call_that_takes_longer_than_nearly_all_promises_nothing():
    async with rungs(rungs=(Rung.FULL,)) as it:
        holder = await it.occupy()
        it.clock._s += 5.0
        with pytest.raises(BudgetError):
            it.submit(windows("a"), 1000)
        it.models[Rung.FULL].gate.set()
        await holder


async def test_the_smallest_request_of_all_is_refused_at_the_door_where_it_would_be_late():
    async with rungs(rungs=(Rung.FULL,)) as it:
        now_s = it.clock.monotonic_s()
        with pytest.raises(BudgetError):
            it.engine.check_door(it.ladder, Deadline(now_s, 50), Rung.FULL, Priority.CONTROL)
        it.engine.check_door(it.ladder, Deadline(now_s, 500), Rung.FULL, Priority.CONTROL)


async def test_many_lengths_cost_a_call_each_and_not_one_a_call_and_length():
    async with rungs(rungs=(Rung.FULL,)) as it:
        values = np.ones((1, 40), dtype=np.float32)
        many = [KpiWindow("a", ("A",), 0, 1000, values[:, : i + 1]) for i in range(40)]
        # 40 lengths in 10 calls of 4 windows: 40 calls inside of them, not 400.
        answer = it.submit(many, 40 * 100 * 1.5)
        await answer


async def test_after_a_failed_call_what_is_tried_again_is_not_promised_to_others():
    async with rungs(rungs=(Rung.FULL,)) as it:
        model = it.models[Rung.FULL]
        holder = await it.occupy()
        model.failing_cells = {"bad0"}
        names = ("good", "bad", "fine")
        asked = [it.submit(windows(name), 1e6, Rung.FULL) for name in names]
        turn = asyncio.Semaphore(0)
        seen: list[bool] = []

        def offer():
            # Called in the middle of the first of three single calls.
            if model.calls[-1][0] == ["good0"] and not seen:
                seen.append(True)
                it.loop.call_soon_threadsafe(turn.release)
                assert it.offered.wait(30)

        model.on_call = lambda: (it.spend(Rung.FULL), offer())
        model.gate.set()
        await turn.acquire()
        with pytest.raises(BudgetError):
            it.submit(windows("late"), 250, Rung.FULL)
        it.offered.set()
        answers = await asyncio.gather(holder, *asked, return_exceptions=True)
        assert [type(answer).__name__ for answer in answers[1:]] == [
            "Answer",
            "InferenceError",
            "Answer",
        ]
