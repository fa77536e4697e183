"""The forecaster as machine code: made beforehand, for one checkpoint and one kind of processor."""

from model.compiled.artifact import Artifact, artifact_folder, find_artifact, read_artifact
from model.compiled.choice import best_artifact, is_settled, wanted_precisions
from model.compiled.network import CompiledNetwork
from model.compiled.target import Precision, Target

__all__ = [
    "Artifact",
    "CompiledNetwork",
    "Precision",
    "Target",
    "artifact_folder",
    "best_artifact",
    "find_artifact",
    "is_settled",
    "read_artifact",
    "wanted_precisions",
]
