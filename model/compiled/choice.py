"""Which compiled code a checkpoint is served with."""

from __future__ import annotations

from collections.abc import Sequence

from model.checkpoint import Checkpoint
from model.compiled.artifact import Artifact, find_artifact
from model.compiled.target import Precision, multiplies_bfloat16


def wanted_precisions(precision: Precision | None) -> Sequence[Precision]:
    """What to try, best first: the one that is named, or all that the processor is fast with.

    Args:
        precision: What was asked for, None where the choice is free.
    """
    if precision is not None:
        return (precision,)
    if multiplies_bfloat16():
        return (Precision.BFLOAT16, Precision.FLOAT32)
    return (Precision.FLOAT32,)


def best_artifact(checkpoint: Checkpoint, precision: Precision | None = None) -> Artifact | None:
    """The fastest artifact that has been made of a checkpoint for this machine.

    Args:
        checkpoint: What is served.
        precision: Only this one; None takes the fastest.

    Raises:
        ArtifactError: There is one that cannot be used.
    """
    for candidate in wanted_precisions(precision):
        if artifact := find_artifact(checkpoint, candidate):
            return artifact
    return None
