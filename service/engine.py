"""The engine: from windows to forecasts, in order, in batches and before their deadline.

Everything but inference runs on the event loop, so the queue needs no lock; inference runs on one
thread, because two forward passes at a time on the same cores only make both late. A free model
takes whatever waits, at once and at most `batch_limit` windows (measured best between 8 and 32):
there is no timer that would make a lone request wait for company. A request with more windows than
that is taken in pieces and goes back to the end of the queue between them, so that a bulk request
does not hold up small ones.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from kpi.window import KpiWindow
from model.predictor import Forecast, Predictor
from service.budget import Deadline
from service.clock import Clock, Timer
from service.errors import DeadlineError, InferenceError, NotReadyError, OverloadedError
from service.logs import log_failure
from service.metrics import Metrics, Stage

_LOGGER = logging.getLogger(__name__)

BATCH_LIMIT = 32
# Weight of the newest batch in the running mean of seconds a window.
_COST_WEIGHT = 0.2


@dataclass(eq=False, slots=True)
class _Job:
    """One request in the engine; `taken` of its windows have been given to the model."""

    windows: Sequence[KpiWindow]
    horizon: int
    levels: tuple[float, ...]
    deadline: Deadline
    answer: asyncio.Future[list[Forecast]]
    queued_s: float
    timer: Timer | None = None
    taken: int = 0
    forecasts: list[Forecast] = field(default_factory=list)

    @property
    def left(self) -> int:
        return len(self.windows) - self.taken

    def fits_with(self, other: _Job) -> bool:
        return self.horizon == other.horizon and self.levels == other.levels


@dataclass(frozen=True, slots=True)
class _Piece:
    """Windows of one job that go into one batch."""

    job: _Job
    windows: Sequence[KpiWindow]


class Engine:
    """Runs one predictor for many requests.

    Args:
        predictor: Answers the batches; called from one thread only.
        clock: The monotonic clock that deadlines follow.
        metrics: Told of stages, batches and the depth of the queue.
        queue_limit: Requests that may wait or run at a time.
        batch_limit: Windows in one call of the predictor.
    """

    def __init__(
        self,
        predictor: Predictor,
        *,
        clock: Clock,
        metrics: Metrics,
        queue_limit: int,
        batch_limit: int = BATCH_LIMIT,
    ) -> None:
        self._predictor = predictor
        self._clock = clock
        self._metrics = metrics
        self._queue_limit = queue_limit
        self._batch_limit = batch_limit
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="inference")
        self._jobs: set[_Job] = set()
        self._waiting: deque[_Job] = deque()
        self._work = asyncio.Event()
        self._window_cost_s = 0.0
        self._accepts = False
        self._dispatcher: asyncio.Task[None] | None = None

    @property
    def predictor(self) -> Predictor:
        """Who answers."""
        return self._predictor

    @property
    def is_running(self) -> bool:
        """Whether requests are accepted and someone works on them."""
        return self._accepts and self._dispatcher is not None and not self._dispatcher.done()

    async def start(self, warm_up: Sequence[KpiWindow]) -> None:
        """Run the predictor once on `warm_up`, so that the first request does not pay for it."""
        await self._warm(self._predictor, warm_up)
        self._dispatcher = asyncio.create_task(self._dispatch(), name="engine-dispatch")
        self._accepts = True

    async def replace(self, predictor: Predictor, warm_up: Sequence[KpiWindow]) -> None:
        """Let another predictor answer from the next batch on, once it has run on `warm_up`."""
        await self._warm(predictor, warm_up)
        self._predictor = predictor
        self._window_cost_s = 0.0  # of another predictor

    async def _warm(self, predictor: Predictor, windows: Sequence[KpiWindow]) -> None:
        least, most = predictor.level_range
        levels = (least, most) if least < most else (least,)
        await asyncio.get_running_loop().run_in_executor(
            self._executor, predictor.predict, windows, predictor.max_horizon, levels
        )

    def submit(
        self,
        windows: Sequence[KpiWindow],
        horizon: int,
        levels: Sequence[float],
        deadline: Deadline,
    ) -> asyncio.Future[list[Forecast]]:
        """Queue one request; the result has one forecast a window, in order.

        Cancelling the result takes the request out of the queue. It fails with `DeadlineError` at
        its deadline, whether it still waits or is being worked on, and with `InferenceError` where
        the model failed.

        Raises:
            NotReadyError: The engine is not started, or stops.
            OverloadedError: As many requests as the limit allows are waiting.
            DeadlineError: The deadline has passed already.
        """
        if not self.is_running:
            raise NotReadyError("the engine takes no requests; it starts or stops")
        if len(self._jobs) >= self._queue_limit:
            raise OverloadedError(
                f"{len(self._jobs)} requests wait for the model, which is the limit",
                self._retry_after_s(),
            )
        now_s = self._clock.monotonic_s()
        if deadline.has_passed(now_s):
            raise DeadlineError(Stage.WINDOW, deadline.budget_ms)
        job = _Job(
            windows=windows,
            horizon=horizon,
            levels=tuple(levels),
            deadline=deadline,
            answer=asyncio.get_running_loop().create_future(),
            queued_s=now_s,
        )
        job.timer = self._clock.call_at(deadline.expires_s, lambda: self._expire(job))
        job.answer.add_done_callback(lambda _: self._leave(job))
        self._jobs.add(job)
        self._waiting.append(job)
        self._work.set()
        self._show_depth()
        return job.answer

    async def drain(self, timeout_s: float) -> None:
        """Take no more requests, answer those that wait, then end the thread.

        Args:
            timeout_s: After this many seconds what still waits is refused.
        """
        self._accepts = False
        answers = [job.answer for job in self._jobs]
        if answers:
            _, late = await asyncio.wait(answers, timeout=timeout_s)
            for answer in late:
                answer.set_exception(NotReadyError("the service stops"))
        if self._dispatcher is not None:
            self._dispatcher.cancel()
            await asyncio.gather(self._dispatcher, return_exceptions=True)
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _leave(self, job: _Job) -> None:
        """The job is answered, failed or cancelled: forget it wherever it stands."""
        if job.timer is not None:
            job.timer.cancel()
        self._jobs.discard(job)
        # It may stand in the queue until the model is free; its samples need not wait with it.
        job.windows = ()
        self._show_depth()

    def _expire(self, job: _Job) -> None:
        stage = Stage.INFER if job.taken else Stage.QUEUE
        _fail(job, DeadlineError(stage, job.deadline.budget_ms))

    def _retry_after_s(self) -> int:
        windows = sum(job.left for job in self._jobs)
        return max(1, math.ceil(windows * self._window_cost_s))

    def _show_depth(self) -> None:
        self._metrics.set_queue_depth(
            sum(len(job.windows) - len(job.forecasts) for job in self._jobs)
        )

    async def _dispatch(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            while batch := self._next_batch():
                await self._run(batch)

    def _next_batch(self) -> list[_Piece]:
        """Pieces of the oldest job and of all that can go with it, up to the batch limit."""
        now_s = self._clock.monotonic_s()
        pieces: list[_Piece] = []
        passed_over: list[_Job] = []
        unfinished: list[_Job] = []
        room = self._batch_limit
        while self._waiting and room:
            job = self._waiting.popleft()
            if not job.answer.done() and job.deadline.has_passed(now_s):
                self._expire(job)
            if job.answer.done():
                continue
            if pieces and not job.fits_with(pieces[0].job):
                passed_over.append(job)
                continue
            if not job.taken:
                self._metrics.observe_stage(Stage.QUEUE, now_s - job.queued_s)
            windows = job.windows[job.taken : job.taken + room]
            pieces.append(_Piece(job, windows))
            job.taken += len(windows)
            room -= len(windows)
            if job.left:
                unfinished.append(job)
        self._waiting.extendleft(reversed(passed_over))
        self._waiting.extend(unfinished)
        return pieces

    async def _run(self, pieces: Sequence[_Piece]) -> None:
        windows = [window for piece in pieces for window in piece.windows]
        job = pieces[0].job
        begun_s = self._clock.monotonic_s()
        try:
            forecasts = await asyncio.get_running_loop().run_in_executor(
                self._executor, self._predictor.predict, windows, job.horizon, job.levels
            )
            if len(forecasts) != len(windows):
                raise InferenceError(
                    f"expected {len(windows)} forecasts from the model, got {len(forecasts)}"
                )
        except Exception as error:
            await self._contain(pieces, error)
            return
        spent_s = self._clock.monotonic_s() - begun_s
        self._metrics.observe_stage(Stage.INFER, spent_s)
        self._metrics.observe_batch(len(windows))
        self._learn_cost(spent_s / len(windows))
        self._deliver(pieces, forecasts)

    def _deliver(self, pieces: Sequence[_Piece], forecasts: Sequence[Forecast]) -> None:
        taken = 0
        now_s = self._clock.monotonic_s()
        for piece in pieces:
            job = piece.job
            job.forecasts.extend(forecasts[taken : taken + len(piece.windows)])
            taken += len(piece.windows)
            if job.answer.done() or len(job.forecasts) < len(job.windows):
                continue
            if job.deadline.has_passed(now_s):
                self._expire(job)
            else:
                job.answer.set_result(job.forecasts)
        self._show_depth()

    async def _contain(self, pieces: Sequence[_Piece], error: Exception) -> None:
        """Let one request's failure not become its neighbours'."""
        if len(pieces) > 1:
            for piece in pieces:
                await self._run([piece])
            return
        job = pieces[0].job
        log_failure(_LOGGER, "inference_failed", error, windows=len(pieces[0].windows))
        _fail(job, InferenceError(f"the model failed: {type(error).__name__}"))

    def _learn_cost(self, window_cost_s: float) -> None:
        known = self._window_cost_s
        self._window_cost_s = (
            known + _COST_WEIGHT * (window_cost_s - known) if known else window_cost_s
        )


def _fail(job: _Job, error: Exception) -> None:
    if not job.answer.done():
        job.answer.set_exception(error)
