"""The engine's door: which rung answers a request in time, or that none does.

There are two lanes: one thread runs the forecaster, because two forward passes at a time on the
same cores only make both late; the seasonal baseline has a thread of its own, so that there is an
answer while the model is busy, or slower than it was. Each request is given the best rung by which
it and all that were accepted before it are in time. Where there is none it is refused at once,
which costs the client a few milliseconds instead of its whole budget.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Hashable, Sequence
from functools import partial

from kpi.window import KpiWindow
from model.predictor import Rung
from service.budget import Deadline
from service.clock import Clock
from service.engine.cost import CostModel, Effort, Measured
from service.engine.job import Answer, Ask, Job, Priority, expire, fail
from service.engine.ladder import Ladder, Step
from service.engine.lane import Lane
from service.engine.looks import Looks
from service.engine.recent import Recent
from service.engine.refusals import Refusal, Refusals
from service.engine.trials import Call, Trials
from service.engine.worker import Worker
from service.errors import BudgetError, DeadlineError, NotReadyError, OverloadedError
from service.metrics import Metrics, Stage

BATCH_LIMIT = 32
"""Windows in one call: measured best between 8 and 32."""

STALL_S = 60.0
MODEL_NICENESS = 10
"""Requests are read, refused and answered while the model works; it is the one that never pauses,
and where both want the last core the event loop is to have it when it needs it."""
YIELD_S = 0.01
# What writing an answer costs until some have been written: a quarter of a millisecond, and as much
# for every thousand numbers.
_FIRST_ANSWERS = tuple(
    Measured(Effort(thousands, 1), 0.00025 * (1 + thousands)) for thousands in (0.1, 1.0, 10.0)
)
# More of its budget is not kept back from a request: that writing has become quick again, only an
# answer can show.
_MOST_RESERVE_SHARE = 0.25
_LAGS_KEPT, _LAG_MEMORY_S, _LAG_LEVEL = 64, 2.0, 0.95


class Engine:
    """Answers many requests, each by the rungs of one model; several models share its threads.

    Args:
        clock: The monotonic clock that deadlines follow.
        metrics: Told of stages, batches and the depth of the queue.
        queue_limit: Requests that may wait or run at a time.
        warm_up: Windows as those to come; what a model costs is learnt on them.
        batch_limit: Windows in one call of a predictor.
        stall_s: A call that takes longer is given up, and the engine with it.
        on_stall: Told then.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        metrics: Metrics,
        queue_limit: int,
        warm_up: Sequence[KpiWindow],
        batch_limit: int = BATCH_LIMIT,
        stall_s: float = STALL_S,
        on_stall: Callable[[], None] = lambda: None,
    ) -> None:
        self._trials = Trials(warm_up, batch_limit, clock)
        self._clock = clock
        self._metrics = metrics
        self._queue_limit = queue_limit
        self._batch_limit = batch_limit
        self._on_stall = on_stall
        self._jobs: dict[Priority, set[Job]] = {priority: set() for priority in Priority}
        self._looks = Looks()
        self._answers = CostModel(_FIRST_ANSWERS)
        self._lags = Recent(_LAGS_KEPT, _LAG_MEMORY_S)
        self._accepts = False
        self._is_stalled = False

        def lane(name: str, niceness: int) -> Lane:
            return Lane(
                Worker(name, niceness),
                clock=clock,
                metrics=metrics,
                batch_limit=batch_limit,
                yield_s=YIELD_S,
                step_down=self._step_down,
                lags=self._lags,
                stall_s=stall_s,
                on_stall=self._stall,
            )

        self._model_lane, self._baseline_lane = (
            lane("inference", MODEL_NICENESS),
            lane("baseline", 0),
        )
        self._refusals = {lane: Refusals() for lane in (self._model_lane, self._baseline_lane)}

    @property
    def is_running(self) -> bool:
        """Whether requests are accepted and someone works on them."""
        lanes = (self._model_lane, self._baseline_lane)
        return self._accepts and not self._is_stalled and all(lane.is_running for lane in lanes)

    def start(self) -> None:
        """Accept requests from now on."""
        self._model_lane.start()
        self._baseline_lane.start()
        self._accepts = True

    async def learn(self, ladder: Ladder, call: Call | None = None) -> None:
        """Learn what the rungs of a model cost, so that its first request does not pay for it.

        Args:
            ladder: The rungs.
            call: Calls them; by default the threads that will do so later, which keeps requests
                waiting once the engine is started.

        Raises:
            ModelError: A rung cannot forecast the windows.
            InferenceError: A rung does not come back, or not with a forecast a window.
        """
        for step in ladder.steps:
            lane = self._lane(step.rung)
            await self._trials.learn(step, ladder, lane.pace, call or lane.call)
            lane.show_cost(step)

    def replace(self, old: Ladder, new: Ladder) -> None:
        """Let another ladder of the same model answer what has not been begun."""
        for lane in (self._model_lane, self._baseline_lane):
            for job in lane.jobs:
                step = new.step_of(job.step.rung)
                if job.ladder is old and not job.taken and step is not None:
                    job.ladder = new
                    job.choose(step)

    def check_door(
        self,
        ladder: Ladder,
        deadline: Deadline,
        least_rung: Rung,
        priority: Priority,
        samples: int | None = None,
    ) -> None:
        """Refuse a request before it is read, where even a small one could not be in time.

        Args:
            ladder: Who would answer it.
            deadline: Of the request.
            least_rung: The least that is an answer to it.
            priority: Of the request.
            samples: What it holds at least, as far as that is foretold; for the rest it is taken
                for one like the newest of which the same was.

        Raises:
            NotReadyError: The engine is not started, or stops.
            OverloadedError: As many requests as the limit allows are waiting.
            BudgetError: Nothing fits its budget.
        """
        self.check_permits(priority)
        like = self._looks.find(samples)
        ask = Ask(like.horizon, like.levels, deadline, least_rung, priority, samples)
        placed = self._place((like.window,), ask, ladder, is_known=True)
        if isinstance(placed, Refusal):
            raise _budget_error(placed, ask)

    def submit(
        self, windows: Sequence[KpiWindow], ask: Ask, ladder: Ladder
    ) -> asyncio.Future[Answer]:
        """Accept one request, to be answered by a rung of this ladder, or refuse it.

        Cancelling the result takes the request out of the queue. It fails with `DeadlineError` at
        its deadline, whether it still waits or is being worked on, and with `InferenceError` where
        the model failed.

        Raises:
            NotReadyError: The engine is not started, or stops.
            OverloadedError: As many requests as the limit allows are waiting.
            BudgetError: No rung that it takes would be in time.
            DeadlineError: The deadline has passed already.
        """
        self.check_permits(ask.priority)
        now_s = self._clock.monotonic_s()
        if ask.deadline.has_passed(now_s):
            raise DeadlineError(Stage.WINDOW, ask.deadline.budget_ms)
        self._looks.keep(windows, ask)
        placed = self._place(windows, ask, ladder, is_known=ask.foretold_samples is not None)
        if isinstance(placed, Refusal):
            raise _budget_error(placed, ask)
        lane, job = placed
        job.timer = self._clock.call_at(ask.deadline.expires_s, lambda: expire(job))
        job.result.add_done_callback(lambda _: self._leave(job))
        self._jobs[ask.priority].add(job)
        lane.put(job)
        self._show_depth()
        return job.result

    def observe_answer(self, answer: Answer, writing_s: float) -> None:
        """An answer has been written just now, and that took so long."""
        numbers = sum(forecast.values.size for forecast in answer.forecasts)
        self._answers.observe(_writing(numbers), writing_s, self._clock.monotonic_s())

    async def drain(self, timeout_s: float) -> None:
        """Take no more requests, answer those that wait, then end the threads.

        Args:
            timeout_s: After this many seconds what still waits is refused.
        """
        self._accepts = False
        results = [job.result for jobs in self._jobs.values() for job in jobs]
        if results:
            _, late = await asyncio.wait(results, timeout=timeout_s)
            for result in late:
                result.set_exception(NotReadyError("the service stops"))
        await self._model_lane.stop()
        await self._baseline_lane.stop()

    def _job(self, windows: Sequence[KpiWindow], ask: Ask, ladder: Ladder, step: Step) -> Job:
        kpis = sum(len(window.kpis) for window in windows)
        writing = _writing(kpis * ask.horizon * len(ask.levels))
        reserve_s = self._answers.longest_s(writing)
        # Until the event loop comes to it, other requests are read and refused.
        reserve_s += self._lags.quantile(_LAG_LEVEL)
        reserve_s = min(reserve_s, _MOST_RESERVE_SHARE * ask.deadline.budget_ms / 1000)
        return Job(
            ask=ask,
            ladder=ladder,
            windows=windows,
            due_s=ask.deadline.expires_s - reserve_s,
            step=step,
            result=asyncio.get_running_loop().create_future(),
            queued_s=self._clock.monotonic_s(),
            batch_limit=self._batch_limit,
        )

    def _lane(self, rung: Rung) -> Lane:
        return self._baseline_lane if rung is Rung.BASELINE else self._model_lane

    def _place(
        self, windows: Sequence[KpiWindow], ask: Ask, ladder: Ladder, *, is_known: bool
    ) -> tuple[Lane, Job] | Refusal:
        """Choose the best rung that fits, and its lane; or say why none does.

        Args:
            windows: What it holds.
            ask: What it wants.
            ladder: Who answers.
            is_known: Whether what the door asks of others like it says enough of it.
        """
        job: Job | None = None
        late_s, own_s = math.inf, math.inf
        for step in ladder.down_to(ask.least_rung):
            lane = self._lane(step.rung)
            refusals = self._refusals[lane]
            asked = _asked(step, ask) if is_known else None
            refusal = refusals.find(asked, ask.deadline.expires_s, lane.moves)
            if refusal is None:
                if job is None:
                    job = self._job(windows, ask, ladder, step)
                else:
                    job.choose(step)
                if (late := lane.late_s(job)) <= 0:
                    return lane, job
                # It may be believed to be slower than it is, and nothing else would show it.
                lane.probe(partial(self._trials.smallest, step, ladder))
                refusal = Refusal(ask.deadline.expires_s, late, lane.own_s(job))
                refusals.keep(asked, refusal, lane.moves)
            late_s, own_s = min(late_s, refusal.late_s), min(own_s, refusal.own_s)
        return Refusal(ask.deadline.expires_s, late_s, own_s)

    def _step_down(self, job: Job) -> bool:
        """Have a job answered by a lesser rung, where it takes one and that is in time."""
        chosen, steps = job.step, job.ladder.down_to(job.ask.least_rung)
        rungs = [step.rung for step in steps]
        if chosen.rung not in rungs:
            return False
        for step in steps[rungs.index(chosen.rung) + 1 :]:
            lane = self._lane(step.rung)
            job.choose(step)
            if lane.late_s(job) <= 0:
                lane.put(job)
                return True
        job.choose(chosen)
        return False

    def check_permits(self, priority: Priority = Priority.CONTROL) -> None:
        """Refuse where one more request of a priority is too many; batch requests count apart.

        Raises:
            NotReadyError: The engine is not started, or stops.
            OverloadedError: As many requests as the limit allows are waiting.
        """
        if not self.is_running:
            raise NotReadyError("the engine takes no requests; it starts or stops")
        jobs = self._jobs[priority]
        if len(jobs) >= self._queue_limit:
            waits_s = sum(self._lane(job.step.rung).own_s(job) for job in jobs)
            raise OverloadedError(
                f"{len(jobs)} requests of priority {priority.value} wait for the model, which is "
                "the limit",
                _retry_after_s(waits_s),
            )

    def _leave(self, job: Job) -> None:
        """The job is answered, failed or cancelled: forget it wherever it stands."""
        if job.timer is not None:
            job.timer.cancel()
        self._jobs[job.ask.priority].discard(job)
        self._lane(job.step.rung).remove(job)
        job.forget()
        self._show_depth()

    def _stall(self) -> None:
        self._is_stalled = True
        for job in [job for jobs in self._jobs.values() for job in jobs]:
            fail(job, NotReadyError("the model does not come back"))
        self._on_stall()

    def _show_depth(self) -> None:
        self._metrics.set_queue_depth(
            sum(
                len(job.windows) - len(job.forecasts)
                for jobs in self._jobs.values()
                for job in jobs
            )
        )


def _asked(step: Step, ask: Ask) -> Hashable:
    """What requests have in common that look alike before they are read."""
    return step, ask.priority, ask.deadline.budget_ms, ask.foretold_samples


def _budget_error(refusal: Refusal, ask: Ask) -> BudgetError:
    return BudgetError(
        f"an answer of rung {ask.least_rung.value} would come {1000 * refusal.late_s:.0f} ms after "
        f"the budget of {ask.deadline.budget_ms:g} ms; it takes {1000 * refusal.own_s:.1f} ms "
        "where nothing else waits: state a larger budget, a lesser rung or fewer series, or come "
        "back later",
        _retry_after_s(refusal.late_s),
    )


def _retry_after_s(wait_s: float) -> int:
    """Whole seconds, at least one; a wait of a hair over two is one of two."""
    return max(1, math.ceil(round(wait_s, 3)))


def _writing(numbers: int) -> Effort:
    return Effort(numbers / 1000, 1)
