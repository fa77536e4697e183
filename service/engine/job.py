"""One request in the engine, and what it gets."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kpi.window import KpiWindow
from model.predictor import Forecast, Rung
from service.budget import Deadline
from service.clock import Timer
from service.engine.cost import Effort
from service.engine.ladder import Extent, Ladder, Step, extents_of
from service.errors import DeadlineError
from service.metrics import Stage


class Priority(StrEnum):
    """Whose answer waits for whose."""

    CONTROL = "control"
    BATCH = "batch"


@dataclass(frozen=True, slots=True)
class Ask:
    """What a request wants of the engine.

    Attributes:
        horizon: Steps to forecast.
        levels: Quantile levels, ascending.
        deadline: When the answer is worth nothing any more.
        least_rung: The least that is an answer to it.
        priority: A batch request is worked on while no control request waits.
        foretold_samples: What it was taken to hold at least when it was let in, None where it was
            let in without a look.
    """

    horizon: int
    levels: tuple[float, ...]
    deadline: Deadline
    least_rung: Rung = Rung.BASELINE
    priority: Priority = Priority.CONTROL
    foretold_samples: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request got.

    Attributes:
        forecasts: One a window, in order.
        queued_s: Time until the first of its windows was taken.
        inferring_s: Time from there to its last forecast.
        done_s: When that was, on the monotonic clock.
    """

    forecasts: list[Forecast]
    queued_s: float
    inferring_s: float
    done_s: float


@dataclass(eq=False, slots=True)
class Job:
    """A request that the engine has accepted.

    Attributes:
        ask: What it wants.
        ladder: Whose rungs may answer it.
        windows: All of its windows.
        due_s: When its last forecast has to be there, so that it can still be written.
        step: The rung that was chosen.
        result: The answer to come.
        queued_s: When it was accepted.
        batch_limit: Windows in one call.
        timer: Ends it at its deadline.
        taken: How many of the windows have been given to the model.
        begun_s: When the first one was.
        forecasts: Those that are there.
        extents: Those of its windows.
        left: What the windows take that the model has not been given, in calls of its own.
        shapes: Those of its windows at this rung.
    """

    ask: Ask
    ladder: Ladder
    windows: Sequence[KpiWindow]
    due_s: float
    step: Step
    result: asyncio.Future[Answer]
    queued_s: float
    batch_limit: int
    timer: Timer | None = None
    taken: int = 0
    begun_s: float | None = None
    forecasts: list[Forecast] = field(default_factory=list)
    extents: list[Extent] = field(init=False)
    left: Effort = field(init=False)
    shapes: frozenset[Extent] = field(init=False)

    def __post_init__(self) -> None:
        self.extents = extents_of(self.windows)
        self.choose(self.step)

    def choose(self, step: Step) -> None:
        """Answer by this rung."""
        self.step = step
        left, most = self.extents[self.taken :], self.batch_limit
        chunks = [left[i : i + most] for i in range(0, len(left), most)]
        efforts = [step.effort(chunk, self.ask.horizon) for chunk in chunks]
        self.left = Effort(sum(one.work for one in efforts), sum(one.calls for one in efforts))
        self.shapes = frozenset(map(step.shape, set(self.extents)))

    @property
    def windows_left(self) -> int:
        """Windows that the model has not been given."""
        return len(self.windows) - self.taken

    @property
    def kind(self) -> Hashable:
        """Jobs of one kind share calls of the model."""
        return self.step, self.ask.horizon, self.ask.levels, self.shapes

    def take(self, most: int, now_s: float) -> Piece:
        """Its next windows, at most so many."""
        windows = self.windows[self.taken : self.taken + most]
        if self.begun_s is None:
            self.begun_s = now_s
        extents = self.extents[self.taken : self.taken + most]
        self.taken += len(windows)
        spent = self.step.effort(extents, self.ask.horizon)
        least_calls = -(-self.windows_left // self.batch_limit)
        self.left = Effort(
            max(0.0, self.left.work - spent.work) if self.windows_left else 0.0,
            max(least_calls, self.left.calls - spent.calls) if self.windows_left else 0,
        )
        return Piece(self, windows, spent)

    def forget(self) -> None:
        """Hold no samples any more: it may stand in the queue until the model is free."""
        self.windows = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """Windows of one job that go into one call.

    Attributes:
        job: Whose they are.
        windows: At least one.
        effort: What they take.
    """

    job: Job
    windows: Sequence[KpiWindow]
    effort: Effort


def together(pieces: Sequence[Piece]) -> Effort:
    """What a call of pieces of one kind takes, of which there is at least one."""
    if len(pieces) == 1:
        return pieces[0].effort
    job = pieces[0].job
    calls = job.step.passes(job.ask.horizon) * len(job.shapes)
    return Effort(sum(piece.effort.work for piece in pieces), calls)


def expire(job: Job) -> None:
    """The job's deadline has passed, or will before it could be done."""
    stage = Stage.INFER if job.taken else Stage.QUEUE
    fail(job, DeadlineError(stage, job.ask.deadline.budget_ms))


def fail(job: Job, error: Exception) -> None:
    """End a job with an error, unless it has ended."""
    if not job.result.done():
        job.result.set_exception(error)
