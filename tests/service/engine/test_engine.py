import asyncio
import gc
import math
import weakref
from contextlib import asynccontextmanager

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from kpi.window import KpiWindow
from model.predictor import Rung
from service.budget import Deadline
from service.engine import Ask, Engine, Ladder, Step
from service.errors import DeadlineError, InferenceError, NotReadyError, OverloadedError
from service.metrics import Metrics
from tests.service.fakes import FakeClock, RepeatLast

pytestmark = pytest.mark.anyio

LEVELS = (0.1, 0.5, 0.9)


def window(cell: str) -> KpiWindow:
    return KpiWindow(cell, ("A",), 0, 1000, np.ones((1, 4), dtype=np.float32))


def windows(prefix: str, count: int) -> list[KpiWindow]:
    return [window(f"{prefix}{i}") for i in range(count)]


class Bench:
    """A started engine over a fake model; the warm-up call is forgotten."""

    def __init__(self, queue_limit: int, batch_limit: int) -> None:
        self.clock = FakeClock()
        self.registry = CollectorRegistry()
        self.model = RepeatLast()
        self.ladder = Ladder((Step(Rung.FULL, self.model),))
        self.engine = Engine(
            clock=self.clock,
            metrics=Metrics(self.registry, self.clock, "near-rt"),
            queue_limit=queue_limit,
            warm_up=[window("warm-up")],
            batch_limit=batch_limit,
        )

    def submit(self, many, horizon=2, levels=LEVELS, budget_ms=100.0):
        deadline = Deadline(self.clock.monotonic_s(), budget_ms)
        return self.engine.submit(many, Ask(horizon, levels, deadline), self.ladder)

    async def occupy(self):
        """Hold the model with one request, and return its answer to come."""
        self.model.gate.clear()
        answer = self.submit([window("holder")], budget_ms=1e9)
        await self.entered()
        return answer

    async def entered(self):
        assert await asyncio.to_thread(self.model.entered.acquire, timeout=30)

    def batches(self):
        return [cells for cells, _, _ in self.model.calls]

    def sample(self, name, **labels):
        return self.registry.get_sample_value(name, labels)


@asynccontextmanager
async def bench(queue_limit=8, batch_limit=4, call_s=0.0):
    made = Bench(queue_limit, batch_limit)
    made.model.on_call = lambda: made.clock.advance(call_s)
    await made.engine.learn(made.ladder)
    made.engine.start()
    made.model.forget_warm_up()
    made.model.on_call = lambda: None
    try:
        yield made
    finally:
        made.model.gate.set()
        await made.engine.drain(30)


async def test_a_request_gets_one_forecast_a_window_in_order():
    async with bench() as b:
        answer = await b.submit(windows("a", 3))
    assert [forecast.cell for forecast in answer.forecasts] == ["a0", "a1", "a2"]


async def test_the_model_is_warmed_up_before_the_first_request():
    made = Bench(1, 1)
    await made.engine.learn(made.ladder)
    made.engine.start()
    assert {len(cells) for cells, _, _ in made.model.calls} == {1}
    assert {call[1:] for call in made.model.calls} == {(48, (0.05, 0.95))}
    await made.engine.drain(1)


async def test_what_waits_goes_into_one_batch_without_a_timer():
    async with bench() as b:
        holder = await b.occupy()
        answers = [b.submit([window(name)]) for name in "abc"]
        b.model.gate.set()
        await asyncio.gather(holder, *answers)
    assert b.batches() == [["holder"], ["a", "b", "c"]]
    assert b.sample("rancast_batch_size_sum") == 4


async def test_no_batch_is_larger_than_the_limit_and_pieces_are_put_together_again():
    async with bench(batch_limit=4) as b:
        answer = await b.submit(windows("a", 10))
    assert [len(cells) for cells in b.batches()] == [4, 4, 2]
    assert [forecast.cell for forecast in answer.forecasts] == [f"a{i}" for i in range(10)]


async def test_a_bulk_request_does_not_hold_up_a_small_one():
    async with bench(batch_limit=2) as b:
        holder = await b.occupy()
        bulk = b.submit(windows("bulk", 6))
        small = b.submit([window("small")])
        b.model.gate.set()
        await asyncio.gather(holder, bulk, small)
    assert b.batches()[1:] == [
        ["small", "bulk0"],
        ["bulk1", "bulk2"],
        ["bulk3", "bulk4"],
        ["bulk5"],
    ]


async def test_requests_of_another_horizon_or_other_levels_go_into_their_own_batch():
    async with bench() as b:
        holder = await b.occupy()
        answers = [
            b.submit([window("a")], horizon=2),
            b.submit([window("b")], horizon=3),
            b.submit([window("c")], horizon=2, levels=(0.5,)),
            b.submit([window("d")], horizon=2),
        ]
        b.model.gate.set()
        await asyncio.gather(holder, *answers)
    assert sorted(b.batches()[1:]) == [["a", "d"], ["b"], ["c"]]


async def test_a_full_queue_refuses_at_the_door_and_says_when_to_come_back():
    async with bench(queue_limit=2, call_s=3) as b:
        holder = await b.occupy()
        waiting = b.submit(windows("w", 4), budget_ms=1e9)
        with pytest.raises(OverloadedError) as caught:
            b.submit([window("late")])
        assert caught.value.retry_after_s == 3
        b.model.gate.set()
        await asyncio.gather(holder, waiting)
        later = await b.submit([window("later")], budget_ms=1e9)
        assert len(later.forecasts) == 1


async def test_a_request_whose_deadline_passes_in_the_queue_never_reaches_the_model():
    async with bench() as b:
        holder = await b.occupy()
        answer = b.submit([window("late")], budget_ms=100)
        b.clock.advance(0.2)
        with pytest.raises(DeadlineError) as caught:
            await answer
        assert caught.value.stage == "queue"
        b.model.gate.set()
        await holder
        await b.submit([window("next")])
    assert b.batches() == [["holder"], ["next"]]


async def test_a_request_whose_deadline_passes_in_the_model_fails_at_its_deadline():
    async with bench() as b:
        b.model.gate.clear()
        answer = b.submit([window("slow")], budget_ms=100)
        await b.entered()
        b.clock.advance(0.2)
        with pytest.raises(DeadlineError) as caught:
            await answer
        assert caught.value.stage == "infer"


async def test_an_answer_that_is_ready_after_its_deadline_is_not_given():
    async with bench() as b:
        # Only the clock's reading moves on, as where its timer fires late.
        def slip():
            b.clock._s += 0.2

        b.model.on_call = slip
        with pytest.raises(DeadlineError):
            await b.submit([window("a")], budget_ms=100)


async def test_a_request_that_is_late_when_the_model_becomes_free_is_dropped_before_it():
    async with bench() as b:
        holder = await b.occupy()
        answer = b.submit([window("late")], budget_ms=100)
        b.clock._s += 0.2
        b.model.gate.set()
        await holder
        with pytest.raises(DeadlineError) as caught:
            await answer
        assert caught.value.stage == "queue"
    assert b.batches() == [["holder"]]


async def test_a_request_that_is_late_when_it_comes_is_refused():
    async with bench() as b:
        deadline = Deadline(b.clock.monotonic_s() - 1, 100)
        with pytest.raises(DeadlineError):
            b.engine.submit([window("a")], Ask(2, LEVELS, deadline), b.ladder)


async def test_a_cancelled_request_leaves_the_queue():
    async with bench() as b:
        holder = await b.occupy()
        gone = b.submit([window("gone")])
        other = b.submit([window("other")])
        gone.cancel()
        b.model.gate.set()
        await asyncio.gather(holder, other)
    assert b.batches() == [["holder"], ["other"]]


async def test_a_request_that_has_left_keeps_no_samples_while_the_model_is_busy():
    async with bench() as it:
        holder = await it.occupy()
        one = window("gone")
        samples = weakref.ref(one.values)
        answer = it.submit([one])
        del one
        answer.cancel()
        await asyncio.sleep(0)
        gc.collect()
        assert samples() is None
        it.model.gate.set()
        await holder


async def test_the_depth_of_the_queue_counts_windows_and_returns_to_zero():
    async with bench() as b:
        holder = await b.occupy()
        more = b.submit(windows("a", 5))
        assert b.sample("rancast_queue_depth") == 6
        b.model.gate.set()
        await asyncio.gather(holder, more)
        assert b.sample("rancast_queue_depth") == 0


async def test_one_requests_failure_is_not_its_neighbours():
    async with bench() as b:
        b.model.failing_cells = {"bad"}
        holder = await b.occupy()
        good, bad = b.submit([window("good")]), b.submit([window("bad")])
        b.model.gate.set()
        results = await asyncio.gather(holder, good, bad, return_exceptions=True)
        assert isinstance(results[2], InferenceError)
        assert results[1].forecasts[0].cell == "good"  # type: ignore[union-attr]
        assert b.engine.is_running


async def test_a_model_that_loses_forecasts_fails_the_request():
    async with bench() as b:
        b.model.predict = lambda *_: []
        with pytest.raises(InferenceError):
            await b.submit([window("a")])


async def test_stages_are_timed():
    async with bench() as b:
        holder = await b.occupy()
        waiting = b.submit([window("a")], budget_ms=1e6)
        b.clock.advance(3)
        b.model.on_call = lambda: b.clock.advance(2)
        b.model.gate.set()
        await asyncio.gather(holder, waiting)
    assert b.sample("rancast_stage_duration_seconds_sum", stage="queue") == 5
    assert b.sample("rancast_stage_duration_seconds_sum", stage="infer") == 3 + 2 + 2


async def test_draining_answers_what_waits_and_refuses_what_comes():
    async with bench() as b:
        holder = await b.occupy()
        waiting = b.submit([window("a")])
        draining = asyncio.create_task(b.engine.drain(30))
        await asyncio.sleep(0)
        with pytest.raises(NotReadyError):
            b.submit([window("late")])
        b.model.gate.set()
        await draining
        assert (await holder).forecasts[0].cell == "holder"
        assert (await waiting).forecasts[0].cell == "a"
        assert not b.engine.is_running


async def test_draining_ends_after_its_time_though_the_model_does_not():
    async with bench() as b:
        holder = await b.occupy()
        await b.engine.drain(0)
        with pytest.raises(NotReadyError):
            await holder


async def test_an_engine_that_was_not_started_takes_nothing():
    made = Bench(1, 1)
    with pytest.raises(NotReadyError):
        made.engine.submit([window("a")], Ask(2, LEVELS, Deadline(0, math.inf)), made.ladder)
    await made.engine.drain(0)
