"""What the service loads at its start: the model with its card, and the store with its journal.

Torch and the model are imported here, in the functions, so that nothing of it happens at import.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
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
from model.predictor import Predictor
from service.errors import StartupError
from service.logs import log_event
from service.schemas import ModelCard
from service.settings import Compiled, Settings

if TYPE_CHECKING:
    from model.checkpoint import Checkpoint
    from model.compiled import Artifact, Precision

_LOGGER = logging.getLogger(__name__)

_WARM_UP_STEP_MS = 900_000


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A predictor, and what is to be said about it.

    Attributes:
        predictor: Answers.
        card: Where it comes from.
        path: How it is run, None where that is not known.
        checkpoint: What it was made of, None for a predictor of another kind.
        file: Where the checkpoint lies.
    """

    predictor: Predictor
    card: ModelCard
    path: InferencePath | None = None
    checkpoint: Checkpoint | None = None
    file: Path | None = None


def load_model(settings: Settings, catalogue: Catalogue) -> LoadedModel:
    """Read the checkpoint, the shipped one where the settings name none.

    Raises:
        StartupError: There is none, or it cannot be used.
    """
    import torch

    from model.checkpoint import load_checkpoint
    from model.pretrained import find_checkpoint

    torch.set_num_threads(settings.threads)
    try:
        file = find_checkpoint(settings.model_path)
        checkpoint = load_checkpoint(file)
        artifact = cached_artifact(checkpoint, settings)
        predictor, path = best_predictor(checkpoint, catalogue, artifact)
    except ModelError as error:
        raise StartupError(f"the model cannot be loaded: {error}") from error
    known_countries()  # or the first request that names a country would pay for it
    card = describe(predictor).model_copy(
        update={
            "catalogue_version": checkpoint.catalogue_version,
            "training": dict(checkpoint.training),
            "evaluation": dict(checkpoint.evaluation),
            "calibration": (
                None if checkpoint.calibration is None else checkpoint.calibration.to_dict()
            ),
        }
    )
    return LoadedModel(predictor, card, path, checkpoint, file)


def best_predictor(
    checkpoint: Checkpoint, catalogue: Catalogue, artifact: Artifact | None
) -> tuple[Predictor, InferencePath]:
    """What answers for a checkpoint: its compiled code, or itself where that cannot be run.

    Raises:
        ModelError: The weights do not fit.
    """
    try:
        predictor, path = predictor_of(checkpoint, catalogue, artifact)
        if artifact is not None:
            for window in warm_up_windows(checkpoint.config.context_steps):
                predictor.predict([window], predictor.max_horizon, predictor.level_range)
    except ArtifactError as error:
        log_event(_LOGGER, logging.WARNING, "compiled_code_refused", reason=error)
        return predictor_of(checkpoint, catalogue, None)
    return predictor, path


def predictor_of(
    checkpoint: Checkpoint, catalogue: Catalogue, artifact: Artifact | None
) -> tuple[Predictor, InferencePath]:
    """What answers for a checkpoint, and how it is run.

    Raises:
        ModelError: The weights do not fit.
        ArtifactError: The compiled code cannot be loaded.
    """
    from model.attention.native import load
    from model.compiled import CompiledNetwork, Precision
    from model.rollout import Rollout
    from model.transformer import TransformerPredictor

    network = None if artifact is None else CompiledNetwork(artifact)
    predictor = TransformerPredictor(checkpoint, catalogue, network=network)
    path = InferencePath(
        PathKind.EAGER if artifact is None else PathKind.COMPILED,
        Precision.FLOAT32 if artifact is None else artifact.target.precision,
        load().isa or "torch",
    )
    return Rollout(predictor, catalogue), path


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
