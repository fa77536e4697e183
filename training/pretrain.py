"""Make the shipped checkpoints: one recipe a preset, from synthetic cells and named recordings.

Unlike in `rancast train`, recordings do not judge: held-out families of synthetic cells do, and the
calibration is fitted to these and to the end of the recordings, which teaches nothing. The recipe
is fixed here, so that the same command makes the same checkpoint.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import torch

from kpi.catalogue import Catalogue
from kpi.errors import UnreadableFileError
from kpi.history import Selection, load_windows
from kpi.window import KpiWindow
from model.checkpoint import Checkpoint
from model.config import PRESETS, ForecasterConfig
from model.holidays import check_country
from training.calibrate import calibrate_from_batches
from training.dataset import data_card, earlier_parts, windows_digest
from training.errors import DataError
from training.fit import Progress, fit
from training.fit_config import FitConfig
from training.source import MixedSource, Source, SyntheticSource, WindowSource
from training.storage import Place, check_writable, fetched, store_checkpoint
from training.synthetic import GENERATOR, BatchSpec
from training.team import ALONE, Team

RECORDED_RATIO = 0.2
"""Share of batches from recordings, where there are any."""

RECORDED_HISTORY_STEPS = 768
CALIBRATION_RATIO = 0.1
"""Share of each recording, at its end, that only calibrates."""

CALIBRATION_BATCHES = 400
SERIES = 32
LIMITS = (
    "Trained for sampling steps from a second to a week and contexts of 32 to 768 samples; steps "
    "outside are answered without having been learnt. Holidays and events count from steps of a "
    "minute to steps of a day. Cells are forecast one by one: what a neighbour does is not known."
)


@dataclass(frozen=True)
class Recipe:
    """How one preset is trained.

    Attributes:
        steps: Optimiser steps of the schedule.
        learning_rate: Its peak.
    """

    steps: int
    learning_rate: float = 2e-3

    def fit(self, seed: int, *, compiled: bool) -> FitConfig:
        """Settings of a run; it never stops early, so that every seed sees as much."""
        return FitConfig(
            seed=seed,
            steps=self.steps,
            learning_rate=self.learning_rate,
            warmup_steps=200,
            evaluate_every=500,
            validation_batches=32,
            patience=self.steps,
            half_products=True,
            compiled=compiled,
        )


RECIPES: Mapping[str, Recipe] = {
    "nano": Recipe(steps=3_000),
    "small": Recipe(steps=5_000),
    "base": Recipe(steps=5_000, learning_rate=1.5e-3),
}


@dataclass(frozen=True)
class PretrainOptions:
    """What to make, and where.

    Attributes:
        preset: Name of the forecaster's shape, with a recipe in `RECIPES`.
        out: Checkpoint to write; the run's state lies beside it until it is done.
        data: Recordings to learn from besides the synthetic cells, none by default.
        selection: What to take from them.
        seed: Of the first weights and of all data drawn.
        steps: Steps of the schedule where not the recipe's.
        version: Version that the checkpoint bears; its name is `rancast-` and the preset.
        compiled: Compile the forecaster's parts, where a C++ compiler is at hand.
        threads: Threads of the tensor library.
        run_name: A state of the same name but of other data is begun again, not refused.
    """

    preset: str
    out: Place
    data: tuple[Place, ...] = ()
    selection: Selection = field(default_factory=Selection)
    seed: int = 0
    steps: int | None = None
    version: str = "1.0.0"
    compiled: bool = True
    threads: int = 1
    run_name: str = ""

    def __post_init__(self) -> None:
        if self.preset not in RECIPES:
            raise DataError(f"expected a preset from {sorted(RECIPES)}, got {self.preset!r}")
        if self.steps is not None and self.steps < 1:
            raise DataError(f"expected steps of at least 1, got {self.steps}")
        if self.out.is_dir():
            raise DataError(f"expected a file to write to, {self.out} is a directory")

    @property
    def recipe(self) -> Recipe:
        """The preset's recipe, with another length where one is asked for."""
        recipe = RECIPES[self.preset]
        return recipe if self.steps is None else replace(recipe, steps=self.steps)

    @property
    def state_path(self) -> Place:
        """Where the state of an unfinished run lies."""
        return self.out.with_name(f"{self.out.name}.run")


def pretrain(
    options: PretrainOptions,
    catalogue: Catalogue,
    on_error: Callable[[UnreadableFileError], None],
    on_progress: Callable[[Progress], None],
    team: Team = ALONE,
) -> Checkpoint:
    """Train, calibrate, write the checkpoint and return it.

    Args:
        options: What to make.
        catalogue: KPI catalogue.
        on_error: Takes each recording that could not be read; the others are used.
        on_progress: Called after every step, in the team's leader only.
        team: The processes that share the training; the leader alone calibrates and writes.

    Raises:
        PeerError: Another process of the team failed.
        PlaceError: The checkpoint cannot be written, or data are not there; before the first step.
        StoreError: A store failed.
        DataError: The recordings are too short.
        ModelError: The country is not known.
        DivergedError: The loss is no number any more.
        ResumeError: A state of another run lies where this one would keep its own.
        KeyboardInterrupt: Stopped; the state is kept and the same command goes on from it.
    """
    check_country(options.selection.country)
    torch.set_num_threads(options.threads)
    config = PRESETS[options.preset]
    spec = BatchSpec(
        series=SERIES,
        max_context_steps=config.context_steps,
        max_horizon=config.max_horizon,
        patch=config.patch,
    )
    held_out = SyntheticSource(config, replace(spec, held_out=True))
    with team.together():
        if team.leads:
            check_writable(options.out)
        windows = _recordings(options, catalogue, on_error)
        digest = windows_digest(windows) if windows else "none"
        teaching = earlier_parts(windows, CALIBRATION_RATIO)
        # Before the first step, since recordings too short to calibrate on are refused here.
        calibrating = mixed(held_out, windows, config, catalogue, last_ratio=CALIBRATION_RATIO)
        training = mixed(SyntheticSource(config, spec), teaching, config, catalogue)
    settings = options.recipe.fit(options.seed, compiled=options.compiled)
    result = fit(
        settings,
        config,
        training,
        held_out,
        state_path=options.state_path,
        run_name=options.run_name,
        data=("pretrain", GENERATOR, json.dumps(asdict(spec)), str(RECORDED_RATIO), digest),
        on_progress=on_progress,
        team=team,
    )
    checkpoint = Checkpoint(
        name=f"rancast-{options.preset}",
        version=options.version,
        config=config,
        weights=result.last,
        catalogue_version=catalogue.version,
        training={
            "recipe": "pretrain",
            "preset": options.preset,
            "parameters": sum(math.prod(w.shape) for w in result.last.values()),
            "data_digest": digest,
            **(data_card(options.data, options.selection, windows) if windows else {}),
            "data": ["synthetic cells", *(path.name for path in options.data)],
            "recorded_ratio": RECORDED_RATIO if windows else 0.0,
            "calibration_ratio": CALIBRATION_RATIO,
            "generator": GENERATOR,
            "synthetic": asdict(spec),
            "fit": asdict(settings),
            "steps": result.steps,
            "validation_losses": [list(entry) for entry in result.losses],
            "cpu_seconds": round(result.cpu_seconds),
            "torch": torch.__version__,
            "limits": LIMITS,
        },
    )
    if not team.leads:
        return checkpoint
    checkpoint = replace(
        checkpoint,
        calibration=calibrate_from_batches(
            checkpoint,
            calibrating,
            CALIBRATION_BATCHES,
            options.seed,
            provenance={"data": "held-out synthetic cells and the recordings", "digest": digest},
        ),
    )
    checkpoint = store_checkpoint(checkpoint, options.out)
    options.state_path.unlink(missing_ok=True)
    return checkpoint


def _recordings(
    options: PretrainOptions,
    catalogue: Catalogue,
    on_error: Callable[[UnreadableFileError], None],
) -> list[KpiWindow]:
    """The recordings that are named, none where none is."""
    if not options.data:
        return []
    with fetched(options.data) as paths:
        return load_windows(paths, options.selection, catalogue, on_error)


def mixed(
    synthetic: SyntheticSource,
    windows: Sequence[KpiWindow],
    config: ForecasterConfig,
    catalogue: Catalogue,
    *,
    recorded_ratio: float | None = None,
    last_ratio: float = 1.0,
) -> Source:
    """Synthetic cells, with a share of recordings where there are any.

    Args:
        synthetic: The cells, which also say how many series a batch has.
        windows: Recorded cells, none for synthetic ones alone.
        config: Shape of the forecaster.
        catalogue: KPI catalogue.
        recorded_ratio: Share of batches from recordings, by default `RECORDED_RATIO`.
        last_ratio: Origins lie in this last part of each recording.

    Raises:
        DataError: The recordings are too short.
    """
    if not windows:
        return synthetic
    recorded = WindowSource(
        windows,
        config,
        catalogue,
        series_per_batch=synthetic.spec.series,
        max_history_steps=RECORDED_HISTORY_STEPS,
        last_ratio=last_ratio,
    )
    share = RECORDED_RATIO if recorded_ratio is None else recorded_ratio
    return MixedSource((synthetic, recorded), (1 - share, share))
