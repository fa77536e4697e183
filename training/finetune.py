"""From a checkpoint and files to a checkpoint tuned to them: what `rancast finetune` does.

The checkpoint is written in one step at the end, so that a run that is stopped, that diverges or
that finds no room on the disk leaves what was there before.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import torch

from kpi.catalogue import Catalogue
from kpi.errors import UnreadableFileError
from kpi.history import Selection, load_windows
from kpi.window import KpiWindow
from model.checkpoint import Checkpoint
from model.holidays import check_country
from training.calibrate import MIN_CONTEXT_STEPS, CalibrateConfig, fit_calibration
from training.dataset import data_card
from training.errors import DataError
from training.fit import Progress
from training.storage import Place, check_writable, fetched, store_checkpoint, stored_checkpoint
from training.team import ALONE, Team
from training.tuning import TuneConfig, Tuned, forget, tune


@dataclass(frozen=True)
class FinetuneOptions:
    """What to tune, on what, and where to.

    Attributes:
        base: Checkpoint to start from.
        data: Files and directories.
        out: Checkpoint to write; the run's state lies beside it until it is done.
        selection: What to take from the files.
        version: Version that the checkpoint bears, by default that of `base`; its name is that of
            the file.
        tune: How to tune.
        minutes: About how long the run may take; no limit by default.
        threads: Threads of the tensor library.
        run_name: A state of the same name but of other data is begun again, not refused.
    """

    base: Place
    data: tuple[Place, ...]
    out: Place
    selection: Selection = field(default_factory=Selection)
    version: str | None = None
    tune: TuneConfig = field(default_factory=TuneConfig)
    minutes: float | None = None
    threads: int = 1
    run_name: str = ""

    def __post_init__(self) -> None:
        if not self.data:
            raise DataError("expected data to tune to, got none")
        if self.minutes is not None and not 0 < self.minutes < math.inf:
            raise DataError(f"expected minutes above 0, got {self.minutes}")
        if self.minutes is not None and self.tune.steps is not None:
            raise DataError("expected minutes or steps, got both")
        if self.threads < 1:
            raise DataError(f"expected threads of at least 1, got {self.threads}")
        if self.out.is_dir():
            raise DataError(f"expected a file to write to, {self.out} is a directory")

    @property
    def state_path(self) -> Place:
        """Where the state of an unfinished run lies."""
        return self.out.with_name(f"{self.out.name}.run")


@dataclass(frozen=True)
class Finetuned:
    """The checkpoint that was written, and how it came about."""

    checkpoint: Checkpoint
    tuned: Tuned


def finetune(
    options: FinetuneOptions,
    catalogue: Catalogue,
    on_error: Callable[[UnreadableFileError], None],
    on_stage: Callable[[str, int, int], None] = lambda *_: None,
    on_progress: Callable[[Progress], None] = lambda _: None,
    team: Team = ALONE,
) -> Finetuned:
    """Tune, compare, calibrate and write the better checkpoint.

    Args:
        options: What to tune.
        catalogue: KPI catalogue.
        on_error: Takes each file that could not be read; the others are used.
        on_stage: Told what happens beside the steps, how much of it is done, and how much there
            is.
        on_progress: Called after every step, in the team's leader only.
        team: The processes that share the training; the leader alone calibrates and writes.

    Raises:
        PeerError: Another process of the team failed.
        PlaceError: The checkpoint cannot be written, or data are not there; before the first step.
        StoreError: A store failed.
        CheckpointError: `options.base` is no checkpoint.
        DataError: The data are too short to tune and compare.
        DivergedError: The loss is no number any more; nothing is written.
        ResumeError: A state of another run lies where this one would keep its own.
        KeyboardInterrupt: Stopped; the state is kept and the same command goes on from it.
    """
    torch.set_num_threads(options.threads)
    with team.together():
        if team.leads:
            check_writable(options.out)
        base = stored_checkpoint(options.base)
        check_country(options.selection.country)
        with fetched(options.data) as paths:
            windows = load_windows(paths, options.selection, catalogue, on_error)
    began = time.monotonic()
    tuned = tune(
        base,
        windows,
        catalogue,
        options.tune,
        minutes=options.minutes,
        state_path=options.state_path,
        run_name=options.run_name,
        on_stage=on_stage,
        on_progress=on_progress,
        team=team,
    )
    seconds = round(time.monotonic() - began, 1)
    checkpoint = assemble(options, base, windows, catalogue, tuned, seconds)
    if not team.leads:
        return Finetuned(checkpoint, tuned)
    checkpoint = calibrated(checkpoint, tuned, catalogue, partial(on_stage, "calibrating"))
    checkpoint = store_checkpoint(checkpoint, options.out)
    forget(options.state_path)
    return Finetuned(checkpoint, tuned)


def assemble(
    options: FinetuneOptions,
    base: Checkpoint,
    windows: Sequence[KpiWindow],
    catalogue: Catalogue,
    tuned: Tuned,
    seconds: float,
) -> Checkpoint:
    """The checkpoint with its story: where the weights come from and why these were taken.

    Scores and calibration of `base` belong to its weights, so they stay only where these did.
    """
    comparison = comparison_card(tuned)
    return Checkpoint(
        name=options.out.name.removesuffix(".safetensors"),
        version=options.version or base.version,
        config=base.config,
        weights=tuned.weights,
        catalogue_version=catalogue.version,
        training={
            "base": {
                "name": base.name,
                "version": base.version,
                "digest": base.digest,
                "training": dict(base.training),
            },
            "weights": verdict(tuned),
            "tuned_share": tuned.share,
            **data_card(options.data, options.selection, windows),
            "tune": asdict(options.tune),
            "fit": asdict(tuned.fit),
            "steps": tuned.result.steps,
            "validation_losses": [list(entry) for entry in tuned.result.losses],
            "seconds_in_last_process": seconds,
            "torch": torch.__version__,
        },
        evaluation={**({} if tuned.moved else base.evaluation), "held_back": comparison},
        calibration=None if tuned.moved else base.calibration,
    )


def calibrated(
    checkpoint: Checkpoint,
    tuned: Tuned,
    catalogue: Catalogue,
    on_progress: Callable[[int, int], None],
) -> Checkpoint:
    """The checkpoint with a calibration on the held-back period.

    Kinds of KPI of which the period says too little keep the calibration that there was for these
    weights, if any.
    """
    held_back = tuned.held_back
    config = CalibrateConfig(
        # Of a run that is held back whole, all that has a context calibrates.
        calibration_ratio=min(held_back.split.ratio, 1 - 1e-9),
        history_steps=max(MIN_CONTEXT_STEPS, held_back.history_steps),
    )
    try:
        found = fit_calibration(checkpoint, held_back.split.held, catalogue, config, on_progress)
    except DataError as error:
        return replace(checkpoint, training={**checkpoint.training, "calibration": str(error)})
    return replace(checkpoint, calibration=found.over(checkpoint.calibration))


def comparison_card(tuned: Tuned) -> dict[str, Any]:
    """Scores of the first and the tuned weights at the held-back origins, in plain values."""
    comparison, held_back = tuned.comparison, tuned.held_back
    numbers = {
        "gain": comparison.gain,
        "gain_error": comparison.error,
        "gain_needed": comparison.needed,
    }
    return {
        "zero_shot": tuned.zero_shot.card(),
        "tuned": tuned.scores.card(),
        **{name: value if math.isfinite(value) else None for name, value in numbers.items()},
        "origins": len(held_back.cuts),
        "horizon": held_back.horizon,
        "held_back_ratio": held_back.split.ratio,
        "whole_runs": held_back.split.whole_runs,
    }


def verdict(tuned: Tuned) -> str:
    """In words, which weights were taken and why."""
    comparison = tuned.comparison
    if not math.isfinite(comparison.gain):
        return (
            "those of the base: the held-back period does not tell whether tuning gained, since "
            "all of its values are zero or the tuned weights have no forecast for some"
        )
    gain = f"{comparison.gain:+.1%} in WQL on the held-back period"
    if not tuned.moved:
        needed = "a few more days" if math.isinf(comparison.needed) else f"{comparison.needed:.1%}"
        return f"those of the base: tuning gained {gain}, and it takes {needed} to be sure"
    if tuned.share < 1:
        return f"tuned, mixed with those of the base ({tuned.share:.0%} tuned): {gain}"
    return f"tuned: {gain}"
