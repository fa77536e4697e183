"""What the service loads at its start: the model with its card, and the store with its journal.

Torch and the model are imported here, in the functions, so that nothing of it happens at import.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kpi.catalogue import Catalogue
from kpi.errors import KpiError
from kpi.store import KpiStore, StoreLimits
from kpi.window import KpiWindow
from model.errors import ModelError
from model.holidays import known_countries
from model.predictor import Predictor
from service.errors import StartupError
from service.schemas import ModelCard
from service.settings import Settings

_WARM_UP_STEP_MS = 900_000


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A predictor, and what is to be said about it."""

    predictor: Predictor
    card: ModelCard


def load_model(settings: Settings, catalogue: Catalogue) -> LoadedModel:
    """Read the checkpoint, the shipped one where the settings name none.

    Raises:
        StartupError: There is none, or it cannot be used.
    """
    import torch

    from model.checkpoint import load_checkpoint
    from model.pretrained import find_checkpoint
    from model.rollout import Rollout
    from model.transformer import TransformerPredictor

    try:
        checkpoint = load_checkpoint(find_checkpoint(settings.model_path))
        predictor = Rollout(TransformerPredictor(checkpoint, catalogue), catalogue)
    except ModelError as error:
        raise StartupError(f"the model cannot be loaded: {error}") from error
    torch.set_num_threads(settings.threads)
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
    return LoadedModel(predictor, card)


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
    """One window of a plain daily rhythm: the first forward pass pays for what later ones share.

    Args:
        steps: Length of the window; that of the windows to come.
    """
    steps_a_day = 86_400_000 // _WARM_UP_STEP_MS
    phase = np.arange(steps) * (2 * np.pi / steps_a_day)
    load_pct = 50 + 30 * np.sin(phase)
    return [
        KpiWindow(
            cell="warm-up",
            kpis=("RRU.PrbTotDl",),
            start_ms=0,
            step_ms=_WARM_UP_STEP_MS,
            values=load_pct.astype(np.float32)[np.newaxis],  # (1, T)
        )
    ]
