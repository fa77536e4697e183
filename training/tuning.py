"""Tune weights to one network's own cells, and take them only where they became better.

The end of the recordings is held back. A short run of small steps starts from a checkpoint's
weights. Then the tuned weights, and mixtures of them with the first ones (WiSE-FT, Wortsman et al.
2022), are compared with the first ones at the held-back origins. The most tuned of them whose gain
is beyond doubt are taken; where none is, the first weights stay.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from kpi.catalogue import Catalogue
from kpi.window import KpiWindow
from model.checkpoint import Checkpoint
from model.config import ForecasterConfig
from model.transformer import TransformerPredictor
from training.dataset import windows_digest
from training.errors import DataError, DivergedError
from training.fit import FitResult, Progress, fit
from training.fit_config import FitConfig
from training.held_back import (
    Comparison,
    HeldBack,
    Scores,
    TimeSplit,
    compare,
    has_days,
    split_in_time,
)
from training.loss import batch_loss
from training.source import MIN_CONTEXT_PATCHES, MixedSource, Source, SyntheticSource, WindowSource
from training.storage import Place, write_file
from training.synthetic import BatchSpec
from training.team import ALONE, Team

LEARNING_RATE = 1e-3
TARGETS_SEEN = 16.0
"""How often the usual schedule takes each sample as a target."""

LEAST_STEPS = 30
MOST_STEPS = 1_200
FAR_SHARE = 0.25
"""Share of the recorded batches that end anywhere, so that other horizons are not forgotten."""

WEEK_DAYS = 7.0
LEAST_GAIN = 0.005
"""Over a week or more; what less than a week shows has to be as many times as large."""

SHARES = (1.0, 0.5, 0.25)
"""Shares of the tuned weights in the mixtures that are compared, the most tuned first."""

VALIDATIONS = 8
TIMED_STEPS = 4
TRAINING_TIME_RATIO = 0.85
"""Share of the time allowed that is spent in steps; the rest compares and calibrates."""


@dataclass(frozen=True)
class TuneConfig:
    """How to tune; the checkpoint carries it.

    Attributes:
        horizon: Steps ahead that matter most: three quarters of the recorded batches end there or
            before, and the comparison is made there.
        history_steps: Most samples before an origin.
        held_back_ratio: Share of the recordings that is held back, by default 15 % and a day.
        steps: Optimiser steps, by default as many as the amount of data bears.
        learning_rate: Peak, by default 1e-3, and less where there is less than a week of data.
        synthetic_ratio: Share of batches from synthetic cells, against forgetting.
        series: Series in a batch.
        seed: Of all data drawn.
    """

    horizon: int = 24
    history_steps: int = 1_440
    held_back_ratio: float | None = None
    steps: int | None = None
    learning_rate: float | None = None
    synthetic_ratio: float = 0.1
    series: int = 32
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("horizon", 1), ("series", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise DataError(f"expected {name} of at least {least}, got {getattr(self, name)}")
        if self.steps is not None and self.steps < 1:
            raise DataError(f"expected steps of at least 1, got {self.steps}")
        if self.learning_rate is not None and not 0 < self.learning_rate < math.inf:
            raise DataError(f"expected a learning_rate above 0, got {self.learning_rate}")
        if not 0 <= self.synthetic_ratio < 1:
            raise DataError(
                f"expected synthetic_ratio from 0 to below 1, got {self.synthetic_ratio}"
            )
        if self.held_back_ratio is not None and not 0 < self.held_back_ratio < 1:
            raise DataError(f"expected held_back_ratio in (0, 1), got {self.held_back_ratio}")


@dataclass(frozen=True)
class Tuned:
    """What tuning led to.

    Attributes:
        weights: Those that were taken.
        share: Share of the tuned weights in them; 0 where the first weights stayed.
        zero_shot: Scores of the first weights at the held-back origins.
        scores: Scores of the weights that were taken, or else of the tuned ones.
        comparison: Of these scores with the first ones.
        held_back: Where they were scored.
        fit: The settings of the run.
        result: How the run went.
    """

    weights: Mapping[str, Tensor]
    share: float
    zero_shot: Scores
    scores: Scores
    comparison: Comparison
    held_back: HeldBack
    fit: FitConfig
    result: FitResult

    @property
    def moved(self) -> bool:
        """Whether the weights are others than the first ones."""
        return self.share > 0


def tune(
    base: Checkpoint,
    windows: Sequence[KpiWindow],
    catalogue: Catalogue,
    config: TuneConfig,
    *,
    minutes: float | None = None,
    state_path: Place | None = None,
    run_name: str = "",
    on_stage: Callable[[str, int, int], None] = lambda *_: None,
    on_progress: Callable[[Progress], None] = lambda _: None,
    team: Team = ALONE,
) -> Tuned:
    """Tune, compare, and take the better weights.

    Args:
        base: The checkpoint to start from.
        windows: Recordings of the network.
        catalogue: KPI catalogue.
        config: How.
        minutes: Fewer steps than the schedule has are made where they would take longer than this.
        state_path: Where the state of an unfinished run is kept; one found there is gone on from.
        run_name: A state of the same name but of other data is begun again, not refused.
        on_stage: Told what is compared, how many origins are done and how many there are.
        on_progress: Called after every step, in the team's leader only.
        team: The processes that share the steps; each compares for itself.

    Raises:
        PeerError: Another process of the team failed.
        DataError: The data are too short to tune and compare, or the horizon is too long.
        DivergedError: The loss is no number any more; the state is removed.
        ResumeError: A state of another run lies where this one would keep its own.
        KeyboardInterrupt: Stopped; the state is kept and the same call goes on from it.
    """
    if config.horizon > base.config.max_horizon:
        raise DataError(
            f"expected a horizon of at most {base.config.max_horizon} steps, which {base.name} "
            f"can forecast, got {config.horizon}"
        )
    least_context = MIN_CONTEXT_PATCHES * base.config.patch
    if config.history_steps < least_context:
        raise DataError(
            f"expected history_steps of at least {least_context}, the shortest that {base.name} "
            f"learns from, got {config.history_steps}"
        )
    split = split_in_time(
        windows, config.held_back_ratio, least_steps=least_context + base.config.patch
    )
    training, validation = _sources(base.config, split, catalogue, config)
    held_back = HeldBack(split, config.horizon, config.history_steps, least_context)
    schedule = fit_config(split, config)
    if minutes is not None:
        with team.together():
            steps = _affordable_steps(base, training, minutes, state_path) if team.leads else 0
        steps = team.tell(steps)
        schedule = _with_steps(schedule, min(schedule.steps, steps))

    def score(weights: Mapping[str, Tensor], stage: str) -> Scores:
        # Without calibration, since all candidates get a new one.
        plain = replace(base, weights=weights, calibration=None)
        predictor = TransformerPredictor(plain, catalogue)
        return held_back.score(predictor, partial(on_stage, stage))

    zero_shot = score(base.weights, "zero-shot")
    try:
        result = fit(
            schedule,
            base.config,
            training,
            validation,
            initial=base.weights,
            state_path=state_path,
            run_name=run_name,
            data=(windows_digest(windows), repr(config), f"catalogue {catalogue.version}"),
            on_progress=on_progress,
            team=team,
        )
        _check_finite(result, schedule)
    except DivergedError:
        if team.leads:
            forget(state_path)
        raise

    def candidate(share: float) -> Tuned:
        weights = mixture(base.weights, result.last, share)
        scores = score(weights, "tuned")
        comparison = compare(zero_shot, scores, least_gain(split))
        return Tuned(weights, share, zero_shot, scores, comparison, held_back, schedule, result)

    candidates = []
    for share in SHARES:
        candidates.append(candidate(share))
        if candidates[-1].comparison.is_better:
            return candidates[-1]
    return replace(candidates[0], weights=base.weights, share=0.0)


def mixture(
    first: Mapping[str, Tensor], tuned: Mapping[str, Tensor], share: float
) -> dict[str, Tensor]:
    """Weights on the way from the first ones to the tuned ones; `share` 1 gives the tuned ones."""
    return {name: torch.lerp(tensor, tuned[name], share) for name, tensor in first.items()}


def fit_config(split: TimeSplit, config: TuneConfig) -> FitConfig:
    """The run's settings: more data bear more steps, and less than a week of days smaller ones."""
    observed = sum(int((~np.isnan(window.values)).sum()) for window in split.tune)
    usual = round(TARGETS_SEEN * observed / (config.series * config.horizon))
    steps = config.steps or min(MOST_STEPS, max(LEAST_STEPS, usual))
    rate = config.learning_rate or LEARNING_RATE
    if config.learning_rate is None and has_days(split.tune):
        rate *= min(1.0, split.days / WEEK_DAYS)
    base = FitConfig(
        seed=config.seed,
        batches_per_step=1,
        learning_rate=rate,
        average_decay=0.99,
        validation_batches=4,
        patience=VALIDATIONS + 2,
        save_every_seconds=20.0,
    )
    return _with_steps(base, steps)


def least_gain(split: TimeSplit) -> float:
    """What tuning has to gain, however sure it is: more where few days were held back.

    One day's origins agree with each other, and say little about another day.
    """
    if not has_days(split.held):
        return LEAST_GAIN
    return LEAST_GAIN * max(1.0, WEEK_DAYS / split.held_days)


def _with_steps(schedule: FitConfig, steps: int) -> FitConfig:
    return replace(
        schedule,
        steps=steps,
        warmup_steps=min(20, steps // 5),
        evaluate_every=math.ceil(steps / VALIDATIONS),
    )


def _sources(
    shape: ForecasterConfig, split: TimeSplit, catalogue: Catalogue, config: TuneConfig
) -> tuple[Source, Source]:
    """Batches to learn from, and batches that show how it goes."""
    near = replace(shape, horizon_patches=math.ceil(config.horizon / shape.patch))

    def recorded(
        windows: Sequence[KpiWindow],
        seen_as: ForecasterConfig,
        last_ratio: float,
        least_history_steps: int = 0,
    ) -> Source:
        return WindowSource(
            windows,
            seen_as,
            catalogue,
            series_per_batch=config.series,
            least_history_steps=least_history_steps,
            max_history_steps=config.history_steps,
            last_ratio=last_ratio,
        )

    spec = BatchSpec(
        series=config.series,
        max_context_steps=shape.context_steps,
        max_horizon=shape.max_horizon,
        patch=shape.patch,
    )
    own = 1 - config.synthetic_ratio
    training = MixedSource(
        (
            recorded(split.tune, near, 1.0, config.history_steps),
            recorded(split.tune, shape, 1.0),
            SyntheticSource(shape, spec),
        ),
        (own * (1 - FAR_SHARE), own * FAR_SHARE, config.synthetic_ratio),
    )
    return training, recorded(split.held, near, split.ratio)


def _check_finite(result: FitResult, schedule: FitConfig) -> None:
    if not all(bool(torch.isfinite(tensor).all()) for tensor in result.last.values()):
        raise DivergedError(
            f"expected weights that are numbers after {result.steps} steps; lower the learning "
            f"rate ({schedule.learning_rate:g})"
        )


def _affordable_steps(
    base: Checkpoint, training: Source, minutes: float, state_path: Place | None
) -> int:
    """Steps that fit into the time, by the speed of a few; a run gone on with keeps its number."""
    plan = _plan_path(state_path)
    if plan and state_path and state_path.exists() and plan.exists():
        return int(json.loads(plan.read_bytes())["steps"])
    forecaster = base.build().requires_grad_(True)
    began = time.monotonic()
    for index in range(TIMED_STEPS):
        loss = batch_loss(forecaster, training.batch(np.random.default_rng([index])))
        loss.backward()  # type: ignore[no-untyped-call]
    seconds_a_step = (time.monotonic() - began) / TIMED_STEPS
    steps = max(1, int(60 * minutes * TRAINING_TIME_RATIO / seconds_a_step))
    if plan:
        write_file(plan, json.dumps({"steps": steps}).encode())
    return steps


def forget(state_path: Place | None) -> None:
    """Remove the state of a run that has ended."""
    for path in (state_path, _plan_path(state_path)):
        if path:
            path.unlink(missing_ok=True)


def _plan_path(state_path: Place | None) -> Place | None:
    return state_path and state_path.with_name(f"{state_path.name}.plan")
