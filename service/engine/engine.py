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
from collections.abc import Callable, Sequence

import numpy as np

from kpi.window import KpiWindow
from model.predictor import Rung
from service.budget import Deadline
from service.clock import Clock
from service.engine.cost import CostModel, Effort, Measured
from service.engine.job import Answer, Ask, Job, Priority
from service.engine.ladder import Ladder
from service.engine.lane import Lane, expire, fail
from service.engine.recent import Recent
from service.engine.trials import Call, Trials
from service.engine.worker import Worker
from service.errors import BudgetError, DeadlineError, NotReadyError, OverloadedError
from service.metrics import Metrics, Stage

BATCH_LIMIT = 32
"""Windows in one call: measured best between 8 and 32."""

STALL_S = 60.0
# What any request asks for at least.
_LEAST = KpiWindow("", ("",), 0, 1, np.full((1, 1), np.nan, dtype=np.float32))
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
        self._answers = CostModel(_FIRST_ANSWERS)
        self._lags = Recent(_LAGS_KEPT, _LAG_MEMORY_S)
        self._accepts = False
        self._is_stalled = False

        def lane(name: str) -> Lane:
            return Lane(
                Worker(name),
                clock=clock,
                metrics=metrics,
                batch_limit=batch_limit,
                yield_s=YIELD_S,
                step_down=self._step_down,
                lags=self._lags,
                stall_s=stall_s,
                on_stall=self._stall,
            )

        self._model_lane, self._baseline_lane = lane("inference"), lane("baseline")

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
            await self._trials.learn(step, ladder, call or lane.call)
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
        self, ladder: Ladder, deadline: Deadline, least_rung: Rung, priority: Priority
    ) -> None:
        """Refuse a request before it is read, where even the smallest one could not be in time.

        Raises:
            NotReadyError: The engine is not started, or stops.
            OverloadedError: As many requests as the limit allows are waiting.
            BudgetError: Nothing fits its budget.
        """
        self.check_permits(priority)
        ask = Ask(1, (), deadline, least_rung, priority)
        self._place(self._job((_LEAST,), ask, ladder))

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
        job = self._job(windows, ask, ladder)
        lane = self._place(job)
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

    def _job(self, windows: Sequence[KpiWindow], ask: Ask, ladder: Ladder) -> Job:
        kpis = sum(len(window.kpis) for window in windows)
        writing = _writing(kpis * ask.horizon * len(ask.levels))
        reserve_s = self._answers.margin_ratio * self._answers.estimate_s(writing)
        # Until the event loop comes to it, other requests are read and refused.
        reserve_s += self._lags.quantile(_LAG_LEVEL)
        reserve_s = min(reserve_s, _MOST_RESERVE_SHARE * ask.deadline.budget_ms / 1000)
        return Job(
            ask=ask,
            ladder=ladder,
            windows=windows,
            due_s=ask.deadline.expires_s - reserve_s,
            step=ladder.steps[0],
            result=asyncio.get_running_loop().create_future(),
            queued_s=self._clock.monotonic_s(),
            batch_limit=self._batch_limit,
        )

    def _lane(self, rung: Rung) -> Lane:
        return self._baseline_lane if rung is Rung.BASELINE else self._model_lane

    def _place(self, job: Job) -> Lane:
        """Choose the best rung that fits, and its lane.

        Raises:
            BudgetError: None does.
        """
        late_s, own_s = math.inf, math.inf
        for step in job.ladder.down_to(job.ask.least_rung):
            if job.step is not step:
                job.choose(step)
            lane = self._lane(step.rung)
            if (late := lane.late_s(job)) <= 0:
                return lane
            late_s, own_s = min(late_s, late), min(own_s, lane.own_s(job))
        for step in job.ladder.down_to(job.ask.least_rung):
            self._lane(step.rung).probe(self._trials.smallest(step, job.ladder))
        least = job.ask.least_rung.value
        raise BudgetError(
            f"an answer of rung {least} would come {1000 * late_s:.0f} ms after the budget of "
            f"{job.ask.deadline.budget_ms:g} ms; it takes {1000 * own_s:.1f} ms where nothing else "
            "waits: state a larger budget, a lesser rung or fewer series, or come back later",
            _retry_after_s(late_s),
        )

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


def _retry_after_s(wait_s: float) -> int:
    """Whole seconds, at least one; a wait of a hair over two is one of two."""
    return max(1, math.ceil(round(wait_s, 3)))


def _writing(numbers: int) -> Effort:
    return Effort(numbers / 1000, 1)
