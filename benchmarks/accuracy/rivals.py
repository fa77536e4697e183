"""Train what a checkpoint is compared with: on the same data, for as many steps and series.

Data and budget are read off the card of the checkpoint that they are to be fair to: the synthetic
cells, the recordings and their share, the number of steps and of series a batch, the calibration.
Runs can be stopped and go on where they were; their files lie in a folder that is not checked in.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.accuracy import exam
from benchmarks.accuracy.lstm import LstmCheckpoint, LstmForecaster
from benchmarks.harness import Unavailable
from kpi.catalogue import Catalogue
from kpi.errors import UnreadableFileError
from kpi.history import Selection, load_windows
from kpi.window import KpiWindow
from model.checkpoint import Checkpoint, save_checkpoint
from model.config import POSITIONS, PRESETS, ForecasterConfig
from model.forecaster import Forecaster
from training.calibrate import calibrate_from_batches
from training.dataset import earlier_parts, windows_digest
from training.fit import Progress, fit, weights_digest
from training.fit_config import FitConfig
from training.pretrain import CALIBRATION_BATCHES, RECIPES, mixed
from training.source import Source, SyntheticSource
from training.synthetic import BatchSpec

SYNTHETIC = "synthetic cells"
POSITIONS_PRESET = "nano"


@dataclass(frozen=True)
class Rival:
    """What to train.

    Attributes:
        name: Of the checkpoint and its file.
        config: Shape.
        fit: Budget.
        build: Makes the untrained module.
        checkpoint: Class of the checkpoint, which knows how to build the module again.
    """

    name: str
    config: ForecasterConfig
    fit: FitConfig
    build: Callable[[ForecasterConfig], Forecaster] = Forecaster
    checkpoint: type[Checkpoint] = Checkpoint


def lstm(like: Checkpoint) -> Rival:
    """An LSTM of the size, and with the budget, of a checkpoint."""
    # An LSTM gains nothing from being compiled, and its weights are of one kind in any case.
    settings = replace(budget(like), compiled=False)
    return Rival("lstm", like.config, settings, LstmForecaster, LstmCheckpoint)


def positions() -> list[Rival]:
    """Small forecasters that differ in how they know the order of the patches, and in no else."""
    # Too small to gain what compiling costs; with slopes it would be compiled for every length.
    settings = RECIPES[POSITIONS_PRESET].fit(0, compiled=False)
    return [
        Rival(
            position_name(position), replace(PRESETS[POSITIONS_PRESET], position=position), settings
        )
        for position in POSITIONS
    ]


def position_name(position: str) -> str:
    """Name of the small forecaster with one kind of positions."""
    return f"position-{position}"


def budget(like: Checkpoint) -> FitConfig:
    """The settings with which a checkpoint was trained.

    Raises:
        Unavailable: Its card does not say, or says what this version does not know.
    """
    known = {entry.name for entry in fields(FitConfig)}
    settings = like.training.get("fit")
    if not isinstance(settings, Mapping) or not known.issuperset(settings):
        raise Unavailable(f"the card of {like.name} does not say how it was trained")
    return FitConfig(**settings)


def identity(checkpoint: Checkpoint) -> str:
    """A digest of all that decides what a checkpoint forecasts, and of nothing else in its card."""
    calibration = checkpoint.calibration
    story = [
        weights_digest(checkpoint.weights),
        checkpoint.config.to_dict(),
        None if calibration is None else calibration.to_dict(),
    ]
    return f"sha256:{hashlib.sha256(json.dumps(story, sort_keys=True).encode()).hexdigest()}"


def train_rival(
    rival: Rival,
    like: Checkpoint,
    catalogue: Catalogue,
    folder: Path,
    *,
    steps: int | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Path:
    """Train, calibrate and write one rival; a run that was stopped goes on.

    Args:
        rival: What to train.
        like: Checkpoint whose data it gets.
        catalogue: KPI catalogue.
        folder: Where its checkpoint is written and its state kept.
        steps: A shorter schedule, to try whether all works.
        on_progress: Called after every step.

    Returns:
        Its file.

    Raises:
        Unavailable: The recordings that `like` learnt from do not lie beside the checkout.
    """
    settings = rival.fit if steps is None else replace(rival.fit, steps=steps)
    mixture = Mixture.of(like, rival.config, catalogue)
    path = folder / f"{rival.name}.safetensors"
    state = folder / f"{rival.name}.run"
    result = fit(
        settings,
        rival.config,
        mixture.teaching,
        mixture.held_out,
        build=rival.build,
        state_path=state,
        data=(rival.name, mixture.digest),
        on_progress=on_progress,
    )
    checkpoint = rival.checkpoint(
        name=rival.name,
        version=like.version,
        config=rival.config,
        weights=result.last,
        catalogue_version=catalogue.version,
        training={
            "like": {"name": like.name, "digest": like.digest},
            "data": like.training["data"],
            "data_digest": mixture.digest,
            "fit": asdict(settings),
            "steps": result.steps,
            "validation_losses": [list(entry) for entry in result.losses],
            "torch": torch.__version__,
        },
    )
    calibration = calibrate_from_batches(
        checkpoint, mixture.calibrating, CALIBRATION_BATCHES, settings.seed
    )
    save_checkpoint(replace(checkpoint, calibration=calibration), path)
    state.unlink(missing_ok=True)
    return path


@dataclass(frozen=True)
class Mixture:
    """The data of a checkpoint.

    Attributes:
        teaching: Batches to learn from.
        held_out: Batches of held-out synthetic cells to judge by.
        calibrating: Batches to calibrate on.
        digest: Of the recordings, `none` where there are none.
    """

    teaching: Source
    held_out: Source
    calibrating: Source
    digest: str

    @staticmethod
    def of(like: Checkpoint, config: ForecasterConfig, catalogue: Catalogue) -> Mixture:
        """The data that a checkpoint's card names, for a forecaster of another shape.

        Raises:
            Unavailable: They do not lie beside the checkout.
        """
        card = like.training
        spec = BatchSpec(**card["synthetic"]) if "synthetic" in card else BatchSpec()
        synthetic = SyntheticSource(config, spec)
        held_out = SyntheticSource(config, replace(spec, held_out=True))
        windows = _recordings(card, catalogue)
        if not windows:
            return Mixture(synthetic, held_out, held_out, "none")
        digest = windows_digest(windows)
        if digest != card["data_digest"]:
            raise Unavailable(f"the recordings at hand are not those that {like.name} learnt from")
        share, last_ratio = float(card["recorded_ratio"]), float(card["calibration_ratio"])
        again = partial(mixed, config=config, catalogue=catalogue, recorded_ratio=share)
        return Mixture(
            again(synthetic, earlier_parts(windows, last_ratio)),
            held_out,
            again(held_out, windows, last_ratio=last_ratio),
            digest,
        )


def _recordings(card: Mapping[str, Any], catalogue: Catalogue) -> list[KpiWindow]:
    folder = exam.YARDSTICK.parents[1] / "data"
    paths = [folder / name for name in card["data"] if name != SYNTHETIC]
    if missing := [path.name for path in paths if not path.exists()]:
        raise Unavailable(f"the recordings {', '.join(missing)} do not lie beside the checkout")

    def refuse(error: UnreadableFileError) -> None:
        raise Unavailable(str(error))

    selection = Selection(exclude=tuple(card.get("excluded_cells", ())))
    return load_windows(paths, selection, catalogue, refuse) if paths else []
