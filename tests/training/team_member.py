"""One process of a team, for `test_distributed.py`: torchrun starts it as often as it is told.

Called with a folder and `runs`, it trains alone and in the team from the same settings, and writes
what came of it; with `failure`, its second process fails on the way, and with `stopped` that one is
sent SIGTERM.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from model.config import ForecasterConfig
from training.batch import TrainingBatch
from training.errors import DataError, PeerError
from training.exit_status import STOPPED, status_of
from training.fit import FitResult, Progress, fit, weights_digest
from training.fit_config import FitConfig
from training.source import SyntheticSource
from training.stopping import sigterm_interrupts
from training.synthetic import BatchSpec
from training.team import ALONE, LEADER_SPOKE, Team, joined_team

CONFIG = ForecasterConfig(
    width=16, layers=2, heads=2, feedforward=24, context_patches=4, horizon_patches=2
)
SPEC = BatchSpec(
    series=5,
    max_context_steps=CONFIG.context_steps,
    max_horizon=CONFIG.max_horizon,
    patch=CONFIG.patch,
)
SOURCE = SyntheticSource(CONFIG, SPEC)
FIT = FitConfig(steps=8, batches_per_step=2, warmup_steps=2, evaluate_every=4, validation_batches=3)
RUNS = {
    "whole batches": FIT,
    "batches in slices": replace(FIT, batches_per_step=1),
    "three batches for two": replace(FIT, batches_per_step=3),
    "early stop": replace(FIT, steps=400, learning_rate=1e-30, evaluate_every=1, patience=3),
}


@dataclass(frozen=True)
class FailingSource:
    """Fails in one process when it is asked for a batch of step 3."""

    team: Team
    told: list[int]

    def batch(self, rng: np.random.Generator) -> TrainingBatch:
        """A batch, or an error."""
        self.told.append(1)
        if self.team.rank == 1 and len(self.told) == 3:
            raise DataError("the third batch is bad")
        return SOURCE.batch(rng)


@dataclass(frozen=True)
class StoppingSource:
    """Sends one process SIGTERM while it makes step 3, of two batches a step."""

    team: Team
    told: list[int]

    def batch(self, rng: np.random.Generator) -> TrainingBatch:
        """A batch."""
        self.told.append(1)
        if self.team.rank == 1 and len(self.told) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return SOURCE.batch(rng)


def run(
    settings: FitConfig,
    team: Team,
    state: Path | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> FitResult:
    return fit(
        settings, CONFIG, SOURCE, SOURCE, team=team, state_path=state, on_progress=on_progress
    )


def course(settings: FitConfig, team: Team, state: Path | None = None) -> dict[str, object]:
    """What a run comes to, in plain values."""
    losses: list[float] = []
    result = run(settings, team, state, lambda progress: losses.append(progress.loss))
    return {
        "training": losses,
        "validation": list(result.losses),
        "steps": result.steps,
        "stopped_early": result.stopped_early,
        "largest weight": max(float(weight.abs().max()) for weight in result.last.values()),
        "last": {name: weight.flatten()[:50].tolist() for name, weight in result.last.items()},
        "digest": weights_digest(result.last),
        "cpu_seconds": result.cpu_seconds,
    }


def stop_half_way(progress: Progress) -> None:
    if progress.step == 5:
        raise KeyboardInterrupt


def runs(team: Team, folder: Path) -> dict[str, object]:
    """Everything that two processes have to agree upon."""
    found: dict[str, object] = {}
    for name, settings in RUNS.items():
        found[f"{name}, team"] = course(settings, team)
        if team.leads:
            found[f"{name}, alone"] = course(settings, ALONE)
    state = folder / "state"
    if team.leads:
        try:
            run(FIT, ALONE, state, stop_half_way)
        except KeyboardInterrupt:
            found["state kept"] = state.exists()
    found["gone on"] = course(FIT, team, state if team.leads else folder / "none" / "state")
    try:
        run(replace(FIT, seed=team.rank), team)
    except DataError as error:
        found["other settings"] = str(error)
    try:
        with team.together():
            if team.rank == 1:
                raise DataError("no such cells")
    except (DataError, PeerError) as error:
        found["apart"] = [type(error).__name__, str(error), status_of(error)]
    return found


def stopped(team: Team, folder: Path) -> None:
    """A run that one process is asked to end."""
    steps: list[int] = []
    try:
        with sigterm_interrupts():
            fit(
                *(FIT, CONFIG, StoppingSource(team, []), SOURCE),
                team=team,
                state_path=folder / "state",
                on_progress=lambda progress: steps.append(progress.step),
            )
    except KeyboardInterrupt as error:
        write(folder, team, [type(error).__name__, steps[-1] if steps else None])
        sys.exit(STOPPED)


def main(mode: str, folder: Path) -> None:
    """Play one part, and write down what was seen of it."""
    team = ALONE
    if mode == "failure":
        # torchrun ends the others as soon as one has ended; what they have seen is still written.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with joined_team() as team:
            if mode == "runs":
                write(folder, team, runs(team, folder))
            elif mode == "stopped":
                stopped(team, folder)
            else:
                fit(FIT, CONFIG, FailingSource(team, []), SOURCE, team=team)
    except (DataError, PeerError) as error:
        heard = team.store.check([LEADER_SPOKE])
        write(folder, team, [type(error).__name__, str(error), heard])
        sys.exit(status_of(error))


def write(folder: Path, team: Team, found: object) -> None:
    (folder / f"{team.rank}.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
