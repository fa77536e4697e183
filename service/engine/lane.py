"""A queue and the one thread that works on it.

All but the call itself happens on the event loop, so the queue needs no lock. A free thread takes
what waits at once: there is no timer that would make a lone request wait for company.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from functools import partial

from kpi.window import KpiWindow
from model.predictor import Forecast
from service.clock import Clock, Timer
from service.engine.cost import Pace
from service.engine.job import Answer, Ask, Job, Piece, Priority, expire, fail, together
from service.engine.ladder import Step, extents_of
from service.engine.plan import Plan, Slot
from service.engine.recent import Recent
from service.engine.schedule import Schedule
from service.engine.trials import Trial
from service.engine.usable import are_usable
from service.engine.worker import Worker
from service.errors import InferenceError
from service.logs import log_event, log_failure
from service.metrics import Metrics, Stage

_LOGGER = logging.getLogger(__name__)

_PROBE_INTERVAL_S = 0.25


class Lane:
    """Works on the jobs of some rungs.

    Args:
        worker: The thread.
        clock: The monotonic clock that deadlines follow.
        metrics: Told of stages and batches.
        batch_limit: Windows in one call.
        yield_s: What a call of batch requests should take at most, because a control request that
            comes meanwhile waits for it.
        step_down: Asked to have a job answered by a lesser rung; true where it took it away.
        lags: Told how long the event loop takes to hear of the end of a call.
        stall_s: A call that takes longer is given up.
        on_stall: Told then.
    """

    def __init__(
        self,
        worker: Worker,
        *,
        clock: Clock,
        metrics: Metrics,
        batch_limit: int,
        yield_s: float,
        step_down: Callable[[Job], bool],
        lags: Recent,
        stall_s: float,
        on_stall: Callable[[], None],
    ) -> None:
        self._worker = worker
        self._clock = clock
        self._metrics = metrics
        self._batch_limit = batch_limit
        self._yield_s = yield_s
        self._step_down = step_down
        self._lags = lags
        self._stall_s = stall_s
        self._on_stall = on_stall
        self._schedule = Schedule(batch_limit)
        self._pace = Pace()
        self._waiting: list[Job] = []
        self._probe: Trial | None = None
        self._probed_s = -math.inf
        self._begun_s: float | None = None
        self._free_s = 0.0
        self._overrun_timer: Timer | None = None
        self._plan: Plan | None = None
        self._moves = 0
        self._work = asyncio.Event()
        self._dispatcher: asyncio.Task[None] | None = None

    @property
    def pace(self) -> Pace:
        """How fast its thread is."""
        return self._pace

    @property
    def moves(self) -> int:
        """Grows whenever what it has promised may have become less."""
        return self._moves

    @property
    def is_running(self) -> bool:
        """Whether someone works on what is put into it."""
        return self._dispatcher is not None and not self._dispatcher.done()

    @property
    def jobs(self) -> Sequence[Job]:
        """Those that wait, or of which windows wait."""
        return self._waiting

    def start(self) -> None:
        """Begin to work."""
        self._dispatcher = asyncio.create_task(self._dispatch(), name="engine-lane")

    async def stop(self) -> None:
        """Work on nothing more."""
        if self._dispatcher is not None:
            self._dispatcher.cancel()
            await asyncio.gather(self._dispatcher, return_exceptions=True)
        self._worker.stop()

    def late_s(self, job: Job) -> float:
        """By how much a job, or one that is due after it, would be late; 0 or less where none is.

        Args:
            job: One that is not in the lane.
        """
        return -self._plan_before(job).slack_with_s(job)

    def _plan_before(self, job: Job) -> Plan:
        """What is planned that a job does not go before, whenever it is due."""
        free_s = self._promised_s(self._clock.monotonic_s())
        if job.ask.priority is Priority.BATCH:
            return self._schedule.plan(self._waiting, free_s)
        if self._plan is None or self._plan.free_s != free_s:
            control = [each for each in self._waiting if each.ask.priority is Priority.CONTROL]
            self._plan = self._schedule.plan(control, free_s)
        return self._plan

    def _promised_s(self, now_s: float) -> float:
        """When the model is free for sure, as far as can be told."""
        if self._begun_s is None or now_s <= self._free_s:
            return max(self._free_s, now_s)
        # The call takes longer than nearly all: of it no more is known than how long it has taken.
        return now_s + (now_s - self._begun_s)

    def own_s(self, job: Job) -> float:
        """What a job takes where nothing else is to be done."""
        return self._schedule.own_s(job)

    def probe(self, trial: Callable[[], Trial]) -> None:
        """Measure a rung again, where nothing waits; a request was not given to it."""
        now_s = self._clock.monotonic_s()
        is_busy = bool(self._waiting) or self._begun_s is not None
        known_s = max(self._probed_s, self._pace.observed_s)
        if is_busy or now_s < known_s + _PROBE_INTERVAL_S:
            return
        self._probed_s = now_s
        self._probe = trial()
        self._work.set()

    def put(self, job: Job) -> None:
        """Queue a job."""
        self._waiting.append(job)
        if job.ask.priority is Priority.CONTROL and self._plan and not self._plan.try_add(job):
            self._plan = None
        self._work.set()

    def remove(self, job: Job) -> None:
        """Forget a job, if it waits."""
        if job in self._waiting:
            self._waiting.remove(job)
            self._move_on()

    def _move_on(self) -> None:
        self._plan = None
        self._moves += 1

    async def _dispatch(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            while pieces := self._next_batch():
                await self._run(pieces)
            if self._probe is not None:
                await self._run_probe(self._probe)

    def _next_batch(self) -> list[Piece]:
        self._move_on()
        now_s = self._clock.monotonic_s()
        slots = self._slots(now_s)
        while self._let_one_go(slots, now_s):
            slots = self._slots(now_s)
        if not slots:
            return []
        head = self._schedule.first(slots)
        control = head.ask.priority is Priority.CONTROL
        pieces = self._schedule.batch(
            head, slots, now_s, longest_s=math.inf if control else self._yield_s
        )
        for piece in pieces:
            job = piece.job
            if job.taken == len(piece.windows):
                self._metrics.observe_stage(Stage.QUEUE, now_s - job.queued_s)
            if not job.windows_left:
                self._waiting.remove(job)
        return pieces

    def _slots(self, now_s: float) -> Sequence[Slot]:
        """The jobs that are up next, without those that are answered, gone or late."""
        for job in list(self._waiting):
            if not job.result.done() and job.ask.deadline.has_passed(now_s):
                expire(job)
            if job.result.done():
                self._waiting.remove(job)
        control = [job for job in self._waiting if job.ask.priority is Priority.CONTROL]
        return self._schedule.plan(control or self._waiting, now_s).slots

    def _let_one_go(self, slots: Sequence[Slot], now_s: float) -> bool:
        """Have one that would be late answered otherwise, or not at all; whether there was one.

        It was in time by what was known when it was accepted: the model became slower meanwhile.
        """
        for slot in slots:
            job = slot.job
            if job.taken or slot.finish_s <= job.due_s:
                continue
            self._waiting.remove(job)
            if self._step_down(job):
                return True
            if now_s + self.own_s(job) > job.ask.deadline.expires_s:
                expire(job)
                return True
            self._waiting.append(job)
        return False

    async def _run(self, pieces: Sequence[Piece], behind_s: float = 0.0) -> None:
        """Have the model called with these pieces, and tell their jobs.

        Args:
            pieces: Of one kind.
            behind_s: What is to be done directly after it.
        """
        job = pieces[0].job
        step, cost = job.step, job.step.cost
        windows = [window for piece in pieces for window in piece.windows]
        effort = together(pieces)
        begun_s = self._begin(cost.longest_s(effort) + behind_s)
        self._watch_overrun()
        try:
            forecasts = await self.call(step, windows, job.ask)
        except Exception as error:
            self._end()
            await self._contain(pieces, error)
            return
        self._end()
        spent_s = self._clock.monotonic_s() - begun_s
        self._metrics.observe_stage(Stage.INFER, spent_s)
        self._metrics.observe_batch(len(windows))
        cost.observe(effort, spent_s, begun_s + spent_s)
        self.show_cost(step)
        self._deliver(pieces, forecasts)

    def _begin(self, longest_s: float) -> float:
        """A call begins, that will hardly take longer than this; when."""
        begun_s = self._clock.monotonic_s()
        self._begun_s, self._free_s = begun_s, begun_s + longest_s
        self._move_on()
        return begun_s

    def _end(self) -> None:
        self._begun_s, self._free_s = None, 0.0
        self._move_on()
        if self._overrun_timer is not None:
            self._overrun_timer.cancel()

    def _watch_overrun(self) -> None:
        """See to those that wait, once the call takes longer than was promised."""
        self._overrun_timer = self._clock.call_at(
            self._promised_s(self._clock.monotonic_s()),
            partial(self._soon, asyncio.get_running_loop()),
        )

    def _soon(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_soon_threadsafe(self._overrun)

    def _overrun(self) -> None:
        """Have those answered by a lesser rung that would be late now, where they take one."""
        if self._begun_s is None:
            return
        now_s = self._clock.monotonic_s()
        waiting = [job for job in self._waiting if not job.taken and not job.result.done()]
        for slot in self._schedule.plan(waiting, self._promised_s(now_s)).slots:
            if slot.finish_s > slot.job.due_s:
                self.remove(slot.job)
                if not self._step_down(slot.job):
                    self.put(slot.job)
        self._watch_overrun()

    async def _run_probe(self, trial: Trial) -> None:
        self._probe = None
        step, cost = trial.step, trial.step.cost
        effort = step.effort(extents_of(trial.windows), trial.ask.horizon)
        begun_s = self._begin(cost.longest_s(effort))
        try:
            await self.call(step, trial.windows, trial.ask)
        except Exception as error:
            log_failure(_LOGGER, "probe_failed", error, rung=step.rung.value)
            return
        finally:
            self._end()
        now_s = self._clock.monotonic_s()
        cost.observe(effort, now_s - begun_s, now_s)
        self.show_cost(step)

    async def call(self, step: Step, windows: Sequence[KpiWindow], ask: Ask) -> list[Forecast]:
        """Have a rung forecast windows on the lane's thread.

        Raises:
            ModelError: It cannot forecast them.
            InferenceError: It does not come back, or not with a forecast a window.
        """

        def predict() -> tuple[list[Forecast], float]:
            forecasts = step.predictor.predict(windows, ask.horizon, ask.levels)
            return forecasts, self._clock.monotonic_s()

        watch = self._clock.call_at(self._clock.monotonic_s() + self._stall_s, self._stalled)
        try:
            forecasts, done_s = await self._worker.call(predict)
        finally:
            watch.cancel()
        now_s = self._clock.monotonic_s()
        self._lags.append(now_s - done_s, now_s)
        if len(forecasts) != len(windows):
            raise InferenceError(
                f"expected {len(windows)} forecasts from the model, got {len(forecasts)}"
            )
        return forecasts

    def _stalled(self) -> None:
        self._worker.give_up()
        self._on_stall()

    def _deliver(self, pieces: Sequence[Piece], forecasts: Sequence[Forecast]) -> None:
        taken, now_s = 0, self._clock.monotonic_s()
        for piece in pieces:
            job = piece.job
            own = forecasts[taken : taken + len(piece.windows)]
            taken += len(piece.windows)
            if not are_usable(own, piece.windows):
                identity = job.step.predictor.identity
                log_event(
                    _LOGGER,
                    logging.ERROR,
                    "forecast_unusable",
                    model=identity.name,
                    version=identity.version,
                    rung=job.step.rung.value,
                )
                fail(job, InferenceError("the model gave quantiles that are no numbers"))
            job.forecasts.extend(own)
            if job.result.done() or len(job.forecasts) < len(job.windows):
                continue
            if job.ask.deadline.has_passed(now_s):
                expire(job)
                continue
            begun_s = job.queued_s if job.begun_s is None else job.begun_s
            job.result.set_result(
                Answer(job.forecasts, begun_s - job.queued_s, now_s - begun_s, now_s)
            )

    async def _contain(self, pieces: Sequence[Piece], error: Exception) -> None:
        """Let one request's failure not become its neighbours'."""
        if len(pieces) > 1:
            rest = list(pieces)
            while rest:
                piece = rest.pop(0)
                job, now_s = piece.job, self._clock.monotonic_s()
                if job.ask.deadline.has_passed(now_s):
                    expire(job)
                if not job.result.done():
                    cost = job.step.cost
                    await self._run([piece], sum(cost.estimate_s(each.effort) for each in rest))
            return
        job = pieces[0].job
        log_failure(_LOGGER, "inference_failed", error, windows=len(pieces[0].windows))
        fail(job, InferenceError(f"the model failed: {type(error).__name__}"))

    def show_cost(self, step: Step) -> None:
        """Tell the metrics what a rung costs."""
        self._metrics.show_cost(
            step.predictor.identity, step.rung, call_s=step.cost.call_s, work_s=step.cost.work_s
        )
