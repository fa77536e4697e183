"""The model that is placed: loaded as a service would load it, with any bound of its context."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from kpi.catalogue import Catalogue, load_catalogue
from model.checkpoint import Checkpoint, load_checkpoint
from model.compiled import Artifact
from model.errors import ModelError
from model.inference_path import InferencePath
from model.pretrained import find_checkpoint
from service.engine import Ladder
from service.errors import StartupError
from service.loading import best_ladder, cached_artifact
from service.plan.workload import WorkloadError
from service.settings import Settings


@dataclass(frozen=True)
class Subject:
    """A checkpoint with what is needed to make its rungs.

    Attributes:
        checkpoint: Whose context is as it was asked for.
        artifact: Its compiled code, where the cache has some that the settings allow.
        catalogue: KPI catalogue.
        settings: As a service would have them.
    """

    checkpoint: Checkpoint
    artifact: Artifact | None
    catalogue: Catalogue
    settings: Settings

    def rungs(self, context_steps: int | None = None) -> tuple[Ladder, InferencePath]:
        """The rungs, and how the forward pass is run.

        Args:
            context_steps: Bound of the context, in whole patches; None for the checkpoint's own.

        Raises:
            StartupError: The weights do not fit.
        """
        checkpoint = self.checkpoint
        if context_steps is not None:
            checkpoint = checkpoint.with_context(context_steps // checkpoint.config.patch)
        try:
            return best_ladder(checkpoint, self.catalogue, self.artifact, self.settings)
        except ModelError as error:
            raise StartupError(f"the model cannot be loaded: {error}") from error


def load_subject(settings: Settings, context_steps: int | None = None) -> Subject:
    """Read the checkpoint of the settings, and have torch compute with their threads.

    Args:
        settings: Name or file of the checkpoint, threads, precision.
        context_steps: Samples of context at most; None for all that the checkpoint can take.

    Raises:
        StartupError: There is no such checkpoint, or it cannot be used.
        WorkloadError: The context is longer than the checkpoint's, or shorter than a patch of it.
    """
    torch.set_num_threads(settings.threads)
    try:
        checkpoint = load_checkpoint(find_checkpoint(settings.model_path))
    except ModelError as error:
        raise StartupError(f"the model cannot be loaded: {error}") from error
    artifact = cached_artifact(checkpoint, settings)
    config = checkpoint.config
    if context_steps is not None:
        if not config.patch <= context_steps <= config.context_steps:
            raise WorkloadError(
                f"expected a context of {config.patch} to {config.context_steps} samples for "
                f"{checkpoint.name}, got {context_steps}"
            )
        checkpoint = checkpoint.with_context(context_steps // config.patch)
    return Subject(checkpoint, artifact, load_catalogue(settings.catalogue_files), settings)


_CONTEXT_SHARES = (1.0, 0.75, 0.5, 0.375, 0.25, 0.125, 0.0625)


def context_grid(subject: Subject) -> tuple[int, ...]:
    """Contexts worth measuring, ascending: whole patches, from few samples to all there may be."""
    config = subject.checkpoint.config
    patches = {max(1, round(share * config.context_patches)) for share in _CONTEXT_SHARES}
    return tuple(config.patch * each for each in sorted(patches))
