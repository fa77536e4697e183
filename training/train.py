"""Train a checkpoint from files, from synthetic cells, or from both.

The files are read by the readers of the service, split in time so that the last part of every cell
judges and never teaches, and the checkpoint says what it was made of.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch

from kpi.catalogue import Catalogue
from kpi.errors import UnreadableFileError
from kpi.history import Selection, load_windows
from model.checkpoint import Checkpoint
from model.config import PRESETS, ForecasterConfig
from model.holidays import check_country
from training.dataset import data_card, earlier_parts, windows_digest
from training.errors import DataError
from training.fit import FitResult, Progress, fit
from training.fit_config import FitConfig
from training.source import MixedSource, Source, SyntheticSource, WindowSource
from training.storage import Place, check_writable, fetched, store_checkpoint
from training.synthetic import GENERATOR, BatchSpec
from training.team import ALONE, Team


@dataclass(frozen=True)
class TrainOptions:
    """What to train, on what, and where to.

    Attributes:
        out: Checkpoint to write; the run's state lies beside it until it is done.
        data: Files and directories, none for synthetic cells only.
        selection: What to take from them.
        preset: Name of the forecaster's shape in `model.config.PRESETS`.
        version: Version that the checkpoint bears; its name is that of the file.
        synthetic_ratio: Share of batches from synthetic cells; 1 without data.
        validation_ratio: Share of each cell's history, at its end, that judges.
        series: Series in a batch.
        fit: How to train.
        threads: Threads of the tensor library.
        run_name: A state of the same name but of other data is begun again, not refused.
    """

    out: Place
    data: tuple[Place, ...] = ()
    selection: Selection = field(default_factory=Selection)
    preset: str = "small"
    version: str = "0.1.0"
    synthetic_ratio: float = 0.5
    validation_ratio: float = 0.15
    series: int = 32
    fit: FitConfig = field(default_factory=FitConfig)
    threads: int = 1
    run_name: str = ""

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise DataError(f"expected a preset from {sorted(PRESETS)}, got {self.preset!r}")
        if not 0 <= self.synthetic_ratio <= 1:
            raise DataError(f"expected synthetic_ratio from 0 to 1, got {self.synthetic_ratio}")
        if not 0 < self.validation_ratio < 1:
            raise DataError(
                f"expected validation_ratio between 0 and 1, got {self.validation_ratio}"
            )
        for name in ("series", "threads"):
            if getattr(self, name) < 1:
                raise DataError(f"expected {name} of at least 1, got {getattr(self, name)}")
        if self.out.is_dir():
            raise DataError(f"expected a file to write to, {self.out} is a directory")
        if not self.data and self.synthetic_ratio == 0:
            raise DataError("expected data, or synthetic cells in their place; got neither")

    @property
    def state_path(self) -> Place:
        """Where the state of an unfinished run lies."""
        return self.out.with_name(f"{self.out.name}.run")


@dataclass(frozen=True)
class _Material:
    """Sources and the story of where they come from."""

    training: Source
    validation: Source
    digests: tuple[str, ...]
    story: dict[str, Any]


def train(
    options: TrainOptions,
    catalogue: Catalogue,
    on_error: Callable[[UnreadableFileError], None],
    on_progress: Callable[[Progress], None],
    team: Team = ALONE,
) -> Checkpoint:
    """Train, write the checkpoint and return it.

    Args:
        options: What to train.
        catalogue: KPI catalogue.
        on_error: Takes each file that could not be read; the others are used.
        on_progress: Called after every step, in the team's leader only.
        team: The processes that share the work; the leader alone writes.

    Raises:
        PeerError: Another process of the team failed.
        PlaceError: The checkpoint cannot be written, or data are not there; before the first step.
        StoreError: A store failed.
        DataError: The data are too short or too few.
        DivergedError: The loss is no number any more.
        ResumeError: A state of another run lies where this one would keep its own.
        KeyboardInterrupt: Stopped; the state is kept and the same command goes on from it.
    """
    torch.set_num_threads(options.threads)
    config = PRESETS[options.preset]
    with team.together():
        if team.leads:
            check_writable(options.out)
        material = _material(options, config, catalogue, on_error)
    result = fit(
        options.fit,
        config,
        material.training,
        material.validation,
        state_path=options.state_path,
        run_name=options.run_name,
        data=material.digests,
        on_progress=on_progress,
        team=team,
    )
    checkpoint = assemble(options, config, catalogue, result, material.story)
    if team.leads:
        checkpoint = store_checkpoint(checkpoint, options.out)
        options.state_path.unlink(missing_ok=True)
    return checkpoint


def assemble(
    options: TrainOptions,
    config: ForecasterConfig,
    catalogue: Catalogue,
    result: FitResult,
    story: dict[str, Any],
) -> Checkpoint:
    """The checkpoint of a finished run, with everything that is needed to make it again."""
    return Checkpoint(
        name=options.out.name.removesuffix(".safetensors"),
        version=options.version,
        config=config,
        weights=result.weights,
        catalogue_version=catalogue.version,
        training={
            **story,
            "preset": options.preset,
            "series": options.series,
            "fit": asdict(options.fit),
            "steps": result.steps,
            "stopped_early": result.stopped_early,
            "cpu_seconds": round(result.cpu_seconds),
            "best_validation_loss": result.best_loss,
            "validation_losses": [list(entry) for entry in result.losses],
            "torch": torch.__version__,
        },
    )


def _material(
    options: TrainOptions,
    config: ForecasterConfig,
    catalogue: Catalogue,
    on_error: Callable[[UnreadableFileError], None],
) -> _Material:
    spec = BatchSpec(
        series=options.series,
        max_context_steps=config.context_steps,
        max_horizon=config.max_horizon,
        patch=config.patch,
    )
    synthetic = SyntheticSource(config, spec)
    batches = (GENERATOR, json.dumps(asdict(spec)), f"catalogue {catalogue.version}")
    if not options.data:
        held_out = SyntheticSource(config, replace(spec, held_out=True))
        return _Material(
            synthetic,
            held_out,
            ("synthetic", *batches),
            {"data": ["synthetic cells"], "generator": GENERATOR, "synthetic": asdict(spec)},
        )
    check_country(options.selection.country)
    with fetched(options.data) as paths:
        windows = load_windows(paths, options.selection, catalogue, on_error)
    teaching = earlier_parts(windows, options.validation_ratio)
    recorded = WindowSource(
        teaching,
        config,
        catalogue,
        series_per_batch=options.series,
    )
    judging = WindowSource(
        windows,
        config,
        catalogue,
        series_per_batch=options.series,
        last_ratio=options.validation_ratio,
    )
    shares = (options.synthetic_ratio, 1 - options.synthetic_ratio)
    story: dict[str, Any] = {
        **data_card(options.data, options.selection, windows, teaching),
        "generator": GENERATOR,
        "synthetic": asdict(spec),
        "synthetic_ratio": options.synthetic_ratio,
        "validation_ratio": options.validation_ratio,
    }
    return _Material(
        MixedSource((synthetic, recorded), shares),
        judging,
        (
            str(options.synthetic_ratio),
            str(options.validation_ratio),
            windows_digest(windows),
            *batches,
        ),
        story,
    )
