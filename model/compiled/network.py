"""Compiled programs in the place of the forecaster.

Axis legend: B windows, K KPIs, H future samples, Q quantiles.
"""

from __future__ import annotations

from torch import Tensor

from model.attention.native import load
from model.compiled.artifact import Artifact
from model.compiled.graph import Shape, tensors_of
from model.compiled.runner import RUNNER, Runner
from model.tokens import Tokens


class CompiledNetwork:
    """Answers as `Forecaster` does; other threads of Python go on meanwhile."""

    def __init__(self, artifact: Artifact) -> None:
        """Load the programs.

        Raises:
            ArtifactError: They cannot be loaded.
        """
        self.artifact = artifact
        load()  # the programs call the attention kernel by its name
        runner = Runner(artifact.folder / RUNNER)
        self._programs = {shape: runner.load(artifact.program(shape)) for shape in Shape}

    def __call__(self, tokens: Tokens) -> Tensor:
        """Quantiles in scaled space, unsorted: float32 (B, K, H, Q)."""
        program = self._programs[Shape.of(tokens.inputs.shape[1])]
        return program([x.contiguous() for x in tensors_of(tokens)])
