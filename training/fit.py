"""Fit a forecaster: pinball loss, AdamW with warm-up and cosine, averaged weights, early stop.

Every step's data are a pure function of (seed, step), and the state is saved as it goes, so a run
that was killed ends with the same weights as one that was not.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from model.config import ForecasterConfig
from model.forecaster import Forecaster
from training.accelerate import accelerate, can_compile
from training.batch import TrainingBatch
from training.errors import DivergedError
from training.fit_config import FitConfig, learning_rate
from training.loss import Lesson, batch_loss, lesson_loss, make_lesson
from training.source import Source
from training.state import RunState, optimiser_moments, restore_moments
from training.state_keeper import StateKeeper
from training.stopping import HeldStops
from training.storage import Place
from training.team import ALONE, Team

VALIDATION_STREAM = 1
TRAINING_STREAM = 0


@dataclass(frozen=True)
class Progress:
    """Where a run stands, for a progress bar or a log.

    Attributes:
        step: Steps done.
        steps: Steps of the schedule.
        loss: Training loss, smoothed over about fifty steps.
        validation_loss: The latest one, None before the first.
        steps_per_second: Over the whole time this process ran.
        seconds_left: At that speed.
        trouble: Why the state could not be saved lately, None where it was.
    """

    step: int
    steps: int
    loss: float
    validation_loss: float | None
    steps_per_second: float
    seconds_left: float
    trouble: str | None = None


@dataclass(frozen=True)
class FitResult:
    """How a run went, and what it led to.

    Attributes:
        weights: The averaged weights with the lowest validation loss.
        last: The averaged weights at the end, where the learning rate is lowest.
        steps: Optimiser steps done.
        stopped_early: Whether patience ended the run before its schedule did.
        best_loss: Validation loss of `weights`.
        losses: Validation losses as (step, loss); one of step 0 where the run began from weights.
        cpu_seconds: Processor time of the run, over all processes that it took.
    """

    weights: dict[str, Tensor]
    last: dict[str, Tensor]
    steps: int
    stopped_early: bool
    best_loss: float
    losses: Sequence[tuple[int, float]] = field(default_factory=list)
    cpu_seconds: float = 0.0


def run_fingerprint(
    fit: FitConfig,
    model: ForecasterConfig,
    data: Sequence[str],
    initial: Mapping[str, Tensor] | None = None,
) -> str:
    """A digest of all that decides a run's outcome; a saved state is only good for the same one."""
    story: dict[str, Any] = {"fit": asdict(fit), "model": model.to_dict(), "data": list(data)}
    story["fit"].pop("save_every_seconds")
    if initial is not None:
        story["initial"] = weights_digest(initial)
    return hashlib.sha256(json.dumps(story, sort_keys=True).encode()).hexdigest()


def weights_digest(weights: Mapping[str, Tensor]) -> str:
    """A digest of names, shapes, types and values of weights."""
    digest = hashlib.sha256()
    for name, tensor in sorted(weights.items()):
        digest.update(repr((name, tuple(tensor.shape), str(tensor.dtype))).encode())
        digest.update(tensor.detach().contiguous().numpy().tobytes())
    return f"sha256:{digest.hexdigest()}"


def fit(
    fit_config: FitConfig,
    model_config: ForecasterConfig,
    training: Source,
    validation: Source,
    *,
    build: Callable[[ForecasterConfig], Forecaster] = Forecaster,
    initial: Mapping[str, Tensor] | None = None,
    state_path: Place | None = None,
    run_name: str = "",
    data: Sequence[str] = (),
    on_progress: Callable[[Progress], None] = lambda _: None,
    team: Team = ALONE,
) -> FitResult:
    """Train until the schedule ends or validation stops getting better.

    Args:
        fit_config: How.
        model_config: What.
        training: Batches to learn from.
        validation: Batches to judge by; the same ones each time.
        build: Makes the module to train, and the one that is judged.
        initial: Weights to start from, which are judged first; new ones by default.
        state_path: Where the state is kept; a state found there is gone on from.
        run_name: A state of the same name but of other data is begun again, not refused.
        data: Names of the data, part of the run's fingerprint.
        on_progress: Called after every step, in the team's leader only.
        team: The processes that share the work; the leader alone keeps the state.

    Raises:
        DataError: The processes of the team were given different data or settings.
        PeerError: Another process of the team failed.
        ResumeError: A state was found that is damaged or belongs to another run.
        DivergedError: The loss is no number any more.
        OSError: The state cannot be written, which shows before the first step.
        KeyboardInterrupt: Stopped; the step was ended and the state saved first.
    """
    fingerprint = run_fingerprint(fit_config, model_config, data, initial)
    team.check_same(fingerprint, "data and settings")
    torch.manual_seed(fit_config.seed)
    forecaster = build(model_config)
    if initial is not None:
        forecaster.load_state_dict(dict(initial))
    keeper = StateKeeper(
        state_path if team.leads else None,
        fingerprint,
        fit_config.save_every_seconds,
        run_name=run_name,
    )
    with team.together():
        state = keeper.load()
    state = team.tell(state)
    if state is None:
        weights = _copy(dict(forecaster.state_dict()))
        state = RunState(0, weights, _copy(weights), _copy(weights))
    forecaster.load_state_dict(state.weights)
    judge = build(model_config).eval().requires_grad_(False)
    run = _Run(
        fit_config, forecaster, judge, state, training, validation, on_progress, team, keeper
    )
    if fit_config.half_products:
        accelerate(forecaster, compiled=fit_config.compiled and can_compile())
    if initial is not None and not state.losses:
        run.evaluate()
    with team.together():
        keeper.save(run.snapshot)
    # Saving included: all processes may be sent the signal, each at a moment of its own.
    with HeldStops() as stops:
        try:
            return run.until_done(stops)
        except KeyboardInterrupt:
            if run.is_whole:
                keeper.save(run.snapshot)
            raise


class _Run:
    """One process's part of a run."""

    def __init__(
        self,
        config: FitConfig,
        forecaster: Forecaster,
        judge: Forecaster,
        state: RunState,
        training: Source,
        validation: Source,
        on_progress: Callable[[Progress], None],
        team: Team,
        keeper: StateKeeper,
    ) -> None:
        self.team = team
        self.keeper = keeper
        self.share = team.share(config.batches_per_step)
        self.config = config
        self.forecaster = forecaster
        self.state = state
        self.training = training
        self.on_progress = on_progress
        self.parameters = dict(forecaster.named_parameters())
        matrices = [p for p in self.parameters.values() if p.dim() >= 2]
        vectors = [p for p in self.parameters.values() if p.dim() < 2]
        self.optimiser = torch.optim.AdamW(
            [
                {"params": matrices, "weight_decay": config.weight_decay},
                {"params": vectors, "weight_decay": 0.0},
            ],
            lr=config.learning_rate,
            betas=(0.9, 0.95),
        )
        restore_moments(self.optimiser, self.parameters, state.moments, state.step)
        self.judge = judge
        self.validation = [
            validation.batch(np.random.default_rng([config.seed, VALIDATION_STREAM, index]))
            for index in range(team.rank, config.validation_batches, team.size)
        ]
        self.smoothed_loss, self.is_whole = math.nan, True
        self.started_at, self.started_step = time.monotonic(), state.step
        self.earlier_cpu_seconds = state.cpu_seconds - time.process_time()
        self.counted_cpu_seconds = time.process_time()

    def until_done(self, stops: HeldStops) -> FitResult:
        """Step, judge and save until the end; the result is the best average."""
        config, state = self.config, self.state
        while state.step < config.steps and state.stale_evaluations < config.patience:
            self.is_whole = False
            all_stop = self._step(stops)
            if state.step % config.evaluate_every == 0 or state.step == config.steps:
                self.evaluate()
            self.is_whole = True
            if self.team.leads:
                self.on_progress(self._progress())
            if all_stop or (stops.is_asked and self.team.size == 1):
                stops.stop()
            self.keeper.save_when_due(self.snapshot)
        self.keeper.save_if_possible(self.snapshot)
        if self.team.add_up(torch.tensor(float(stops.is_asked))) > 0:
            stops.stop()
        self.snapshot()
        return FitResult(
            weights=state.best,
            last=state.average,
            steps=state.step,
            stopped_early=state.step < config.steps,
            best_loss=state.best_loss,
            losses=state.losses,
            cpu_seconds=state.cpu_seconds,
        )

    def snapshot(self) -> RunState:
        """The state with the current weights and moments in it."""
        self.state.weights = dict(self.forecaster.state_dict())
        self.state.moments = optimiser_moments(self.optimiser, self.parameters)
        self.state.cpu_seconds = self.earlier_cpu_seconds + time.process_time()
        return self.state

    def _step(self, stops: HeldStops) -> bool:
        """Take a step; returns whether any process was asked to stop by then.

        All learn of that in the same step, so they stop after the same one: the leader would wait
        in vain for one that left by itself, and could not save.
        """
        config, state = self.config, self.state
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(config, state.step)
        self.optimiser.zero_grad(set_to_none=True)
        total = 0.0
        for lesson, observed in self._lessons():
            loss = lesson_loss(self.forecaster, lesson, observed) / config.batches_per_step
            loss.backward()  # type: ignore[no-untyped-call]
            total += float(loss.detach())
        total, asked = self.team.add_gradients(self.parameters, total, float(stops.is_asked))
        if not math.isfinite(total):
            raise DivergedError(
                f"the loss became {total} in step {state.step + 1}; lower the learning rate "
                f"({config.learning_rate:g}), or warm up for more than {config.warmup_steps} steps"
            )
        torch.nn.utils.clip_grad_norm_(self.parameters.values(), config.gradient_norm)
        self.optimiser.step()
        state.step += 1
        decay = min(config.average_decay, state.step / (state.step + 10))
        for name, weight in self.forecaster.state_dict().items():
            state.average[name].lerp_(weight, 1 - decay)
        known = not math.isnan(self.smoothed_loss)
        self.smoothed_loss = 0.98 * self.smoothed_loss + 0.02 * total if known else total
        return asked > 0

    def _lessons(self) -> Iterator[tuple[Lesson, Tensor | None]]:
        """This process's share of a step, each with the targets that its loss is divided by."""
        config, share = self.config, self.share

        def draw(part: int) -> TrainingBatch:
            seed = [config.seed, TRAINING_STREAM, self.state.step, part]
            return self.training.batch(np.random.default_rng(seed))

        shape = self.forecaster.config
        if share.slices == 1:
            yield from ((make_lesson(draw(part), shape), None) for part in share.parts)
            return
        lessons: dict[int, Lesson] = {}
        observed = torch.zeros(config.batches_per_step, dtype=torch.int64)
        for part in share.parts:
            batch = draw(part)
            first, last = share.rows(batch.target.shape[0])
            if last > first:
                lessons[part] = make_lesson(batch.slice(first, last), shape)
                observed[part] = lessons[part].observed
        self.team.add_up(observed)
        yield from ((lesson, observed[part]) for part, lesson in lessons.items())

    def evaluate(self) -> None:
        """Judge the average, and keep it where it is the best so far."""
        state, team = self.state, self.team
        self.judge.load_state_dict(state.average)
        figures = torch.zeros(self.config.validation_batches + 1, dtype=torch.float64)
        with torch.inference_mode():
            for place, batch in enumerate(self.validation):
                figures[team.rank + place * team.size] = float(batch_loss(self.judge, batch))
        if not team.leads:
            figures[-1] = time.process_time() - self.counted_cpu_seconds
            self.counted_cpu_seconds = time.process_time()
        *losses, others_cpu_seconds = team.add_up(figures).tolist()
        self.earlier_cpu_seconds += others_cpu_seconds
        loss = sum(losses) / len(losses)
        state.losses.append((state.step, loss))
        if loss < state.best_loss:
            state.best_loss, state.best = loss, _copy(state.average)
            state.stale_evaluations = 0
        else:
            state.stale_evaluations += 1

    def _progress(self) -> Progress:
        state = self.state
        speed = (state.step - self.started_step) / max(time.monotonic() - self.started_at, 1e-9)
        return Progress(
            step=state.step,
            steps=self.config.steps,
            loss=self.smoothed_loss,
            validation_loss=state.losses[-1][1] if state.losses else None,
            steps_per_second=speed,
            seconds_left=(self.config.steps - state.step) / max(speed, 1e-9),
            trouble=self.keeper.trouble,
        )


def _copy(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in weights.items()}
