"""What the service loads at its start: the model with its card, and the store with its journal.

Torch and the model are imported here, in the functions, so that nothing of it happens at import.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kpi.catalogue import Catalogue
from kpi.errors import KpiError
from kpi.store import KpiStore, StoreLimits
from kpi.window import KpiWindow
from model.errors import ArtifactError, ModelError
from model.holidays import known_countries
from model.inference_path import InferencePath, PathKind, PrecisionChoice
from model.predictor import Predictor, Rung
from service.engine import Ladder, Step
from service.errors import StartupError
from service.logs import log_event
from service.models.served import ServedModel
from service.schemas import ModelCard
from service.self_test import check_forecasts
from service.settings import Compiled, Settings

if TYPE_CHECKING:
    from model.checkpoint import Checkpoint
    from model.compiled import Artifact, Precision

_LOGGER = logging.getLogger(__name__)

_WARM_UP_STEP_MS = 900_000
_SHORT_SHARE = 4
DIGEST_SUFFIX = ".sha256"
"""Of the file beside a checkpoint that states its digest."""


def load_model(named: Path | None, settings: Settings, catalogue: Catalogue) -> ServedModel:
    """Read a checkpoint and try it.

    Args:
        named: Its file, or the name of one that ships; the default one for None.
        settings: How it is run.
        catalogue: What each KPI is.

    Raises:
        StartupError: There is none, or it cannot be used: its bytes are not those that the file
            beside it with the suffix `.sha256` states, it was trained with a catalogue of another
            version, or it fails its self-test.
    """
    import torch

    from model.checkpoint import load_checkpoint
    from model.pretrained import find_checkpoint

    torch.set_num_threads(settings.threads)
    try:
        file = find_checkpoint(named)
        checkpoint = load_checkpoint(file)
        _check_digest(file, checkpoint.digest)
        _check_catalogue(checkpoint, catalogue)
        artifact = cached_artifact(checkpoint, settings)
        ladder, path = best_ladder(checkpoint, catalogue, artifact, settings)
        check_forecasts(ladder, warm_up_windows(checkpoint.config.context_steps))
    except ModelError as error:
        raise StartupError(f"the model cannot be loaded: {error}") from error
    known_countries()  # or the first request that names a country would pay for it
    card = describe(ladder.predictor).model_copy(
        update={
            "catalogue_version": checkpoint.catalogue_version,
            "training": dict(checkpoint.training),
            "evaluation": dict(checkpoint.evaluation),
            "calibration": (
                None if checkpoint.calibration is None else checkpoint.calibration.to_dict()
            ),
        }
    )
    return ServedModel(ladder, card, path, checkpoint, file)


def _check_digest(file: Path, digest: str) -> None:
    """Hold a checkpoint to the file beside it that states its digest, where there is one.

    That is in the form of `sha256sum`: the digest in hexadecimal, and what follows is a name.

    Raises:
        CheckpointError: It is another one, or the file cannot be read.
    """
    from model.errors import CheckpointError

    stated = file.with_name(f"{file.name}{DIGEST_SUFFIX}")
    if not stated.exists():
        return
    try:
        words = stated.read_text(encoding="ascii").split()
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"expected a SHA-256 in {stated}, it cannot be read: {error}"
        ) from error
    expected = words[0].lower() if words else ""
    if digest != f"sha256:{expected}":
        raise CheckpointError(
            f"expected {file} to have the SHA-256 {expected!r} that {stated.name} states, got "
            f"{digest.removeprefix('sha256:')!r}; copy both again"
        )


def _check_catalogue(checkpoint: Checkpoint, catalogue: Catalogue) -> None:
    """Hold a checkpoint to the catalogue: what a KPI means must not have changed since.

    Raises:
        CheckpointError: It was trained with a catalogue of another version.
    """
    from model.errors import CheckpointError

    if checkpoint.catalogue_version != catalogue.version:
        raise CheckpointError(
            f"{checkpoint.name} {checkpoint.version} was trained with version "
            f"{checkpoint.catalogue_version!r} of the KPI catalogue, and version "
            f"{catalogue.version!r} is in force; train it again, or serve it with the release that "
            "it was trained with"
        )


def best_ladder(
    checkpoint: Checkpoint, catalogue: Catalogue, artifact: Artifact | None, settings: Settings
) -> tuple[Ladder, InferencePath]:
    """What answers for a checkpoint: its compiled code, or itself where that cannot be run.

    Raises:
        ModelError: The weights do not fit.
    """
    try:
        ladder, path = ladder_of(checkpoint, catalogue, artifact, settings)
        if artifact is not None:
            predictor = ladder.predictor
            for window in warm_up_windows(checkpoint.config.context_steps):
                predictor.predict([window], predictor.max_horizon, predictor.level_range)
    except ArtifactError as error:
        log_event(_LOGGER, logging.WARNING, "compiled_code_refused", reason=error)
        return ladder_of(checkpoint, catalogue, None, settings)
    return ladder, path


def ladder_of(
    checkpoint: Checkpoint, catalogue: Catalogue, artifact: Artifact | None, settings: Settings
) -> tuple[Ladder, InferencePath]:
    """The rungs of a checkpoint, and how its forward pass is run.

    Raises:
        ModelError: The weights do not fit.
        ArtifactError: The compiled code cannot be loaded.
    """
    from model.attention.native import load
    from model.baseline import SeasonalBaseline
    from model.compiled import CompiledNetwork, Precision
    from model.rollout import Rollout
    from model.transformer import TransformerPredictor

    network = checkpoint.build() if artifact is None else CompiledNetwork(artifact)
    config = checkpoint.config

    def step(rung: Rung, patches: int) -> Step:
        predictor = TransformerPredictor(
            checkpoint.with_context(patches), catalogue, network=network, rung=rung
        )
        return Step(
            rung,
            Rollout(predictor, catalogue),
            most_steps=patches * config.patch,
            pass_steps=config.max_horizon,
        )

    steps = [step(Rung.FULL, config.context_patches)]
    short = settings.short_context_steps or config.context_steps // _SHORT_SHARE
    patches = max(1, short // config.patch)
    if patches < config.context_patches:
        steps.append(step(Rung.SHORT, patches))
    baseline = SeasonalBaseline(
        catalogue, level_range=(config.levels[0], config.levels[-1]), identity=checkpoint.identity
    )
    steps.append(Step(Rung.BASELINE, baseline))
    path = InferencePath(
        PathKind.EAGER if artifact is None else PathKind.COMPILED,
        Precision.FLOAT32 if artifact is None else artifact.target.precision,
        load().isa or "torch",
    )
    return Ladder(tuple(steps)), path


def cached_artifact(checkpoint: Checkpoint, settings: Settings) -> Artifact | None:
    """The best compiled code in the cache that the settings allow; a damaged one is told of."""
    from model.compiled import best_artifact

    if settings.compiled is Compiled.OFF:
        return None
    try:
        return best_artifact(checkpoint, precision_of(settings.precision))
    except ArtifactError as error:
        log_event(_LOGGER, logging.WARNING, "compiled_code_refused", reason=error)
        return None


def precision_of(setting: PrecisionChoice) -> Precision | None:
    """The precision that a setting names, None where the choice is free."""
    from model.compiled import Precision

    return None if setting is PrecisionChoice.AUTO else Precision(setting.value)


def describe(predictor: Predictor) -> ModelCard:
    """The card of a predictor of which nothing more is known than itself."""
    identity = predictor.identity
    return ModelCard(
        name=identity.name,
        version=identity.version,
        digest=identity.digest,
        max_horizon=predictor.max_horizon,
        quantile_range=predictor.level_range,
    )


def open_store(settings: Settings, catalogue: Catalogue) -> KpiStore:
    """The store, filled from its journal where there is one.

    Raises:
        StartupError: The journal cannot be opened or read.
    """
    from kpi.journal import Journal

    limits = StoreLimits(
        max_cells=settings.max_cells,
        history_steps=settings.history_steps,
        max_kpis_per_cell=settings.max_kpis,
        snap_tolerance_ratio=settings.snap_tolerance_ratio,
        keep_suspect=settings.keep_suspect,
    )
    path = settings.journal_path
    try:
        if path is None:
            return KpiStore(limits, catalogue)
        path.parent.mkdir(parents=True, exist_ok=True)
        return KpiStore(limits, catalogue, Journal(path))
    except (KpiError, OSError) as error:
        raise StartupError(f"the store cannot be opened: {error}") from error


def warm_up_windows(steps: int) -> list[KpiWindow]:
    """Windows of a plain daily rhythm: the first forward passes pay for what later ones share.

    Args:
        steps: Length of the windows; that of the windows to come.

    Returns:
        One of a single KPI and one of several, which take different ways through the model.
    """
    steps_a_day = 86_400_000 // _WARM_UP_STEP_MS
    phase = np.arange(steps) * (2 * np.pi / steps_a_day)
    load_pct = (50 + 30 * np.sin(phase)).astype(np.float32)  # (T,)
    return [
        KpiWindow(
            cell="warm-up",
            kpis=kpis,
            start_ms=0,
            step_ms=_WARM_UP_STEP_MS,
            values=np.tile(load_pct, (len(kpis), 1)),  # (K, T)
        )
        for kpis in (("RRU.PrbTotDl",), ("RRU.PrbTotDl", "RRU.PrbTotUl"))
    ]
