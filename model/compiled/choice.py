"""Which compiled code a checkpoint is served with."""

from __future__ import annotations

from collections.abc import Sequence

from model.checkpoint import Checkpoint
from model.compiled.artifact import Artifact, find_artifact
from model.compiled.target import Precision, multiplies_bfloat16
from model.errors import ArtifactError


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
    """The fastest artifact of a checkpoint for this machine whose self-test held.

    Args:
        checkpoint: What is served.
        precision: Only this one; None takes the fastest.

    Raises:
        ArtifactError: There is none that can be used, and one that cannot.
    """
    refusals = []
    for candidate in wanted_precisions(precision):
        try:
            artifact = find_artifact(checkpoint, candidate)
        except ArtifactError as error:
            refusals.append(error)
        else:
            if artifact is not None and artifact.is_faithful:
                return artifact
    if refusals:
        raise refusals[0]
    return None


def is_settled(checkpoint: Checkpoint, precision: Precision | None = None) -> bool:
    """Whether compiling again would bring nothing: the best has been made, or found too coarse."""
    for candidate in wanted_precisions(precision):
        try:
            artifact = find_artifact(checkpoint, candidate)
        except ArtifactError:
            return False
        if artifact is None:
            return False
        if artifact.is_faithful:
            return True
    return True
