"""Compiled programs in the place of the forecaster.

Axis legend: B windows, K KPIs, H future samples, Q quantiles.
"""

from __future__ import annotations

import threading

import torch
from torch import Tensor

from model.attention.native import load
from model.compiled.artifact import Artifact
from model.compiled.graph import Shape, tensors_of
from model.errors import ArtifactError
from model.tokens import Tokens

_MODEL = "model"
_ANY_DEVICE = -1


class CompiledNetwork:
    """Answers as `Forecaster` does. Several threads may call it; they take turns."""

    def __init__(self, artifact: Artifact) -> None:
        """Load the programs.

        Raises:
            ArtifactError: They cannot be loaded.
        """
        self.artifact = artifact
        # Torch's own turn-taking waits without letting Python go on, which the other call needs.
        self._turn = threading.Lock()
        load()  # the programs call the attention kernel by its name
        try:
            # What torch's own function for it calls; that one imports the whole compiler, which
            # takes seconds and a hundred megabytes.
            self._programs = {
                shape: torch._C._aoti.AOTIModelPackageLoader(
                    str(artifact.program(shape)), _MODEL, False, 1, _ANY_DEVICE
                )
                for shape in Shape
            }
        except RuntimeError as error:
            raise ArtifactError(f"{artifact.folder} cannot be loaded: {error}") from error

    def __call__(self, tokens: Tokens) -> Tensor:
        """Quantiles in scaled space, unsorted: float32 (B, K, H, Q)."""
        program = self._programs[Shape.of(tokens.inputs.shape[1])]
        tensors = [x.contiguous() for x in tensors_of(tokens)]
        with self._turn:
            (quantiles,) = program.boxed_run(tensors)
        answer: Tensor = quantiles
        return answer
