"""Models that need no weights, for what is done with them by name and version."""

from __future__ import annotations

from model.inference_path import InferencePath, PathKind
from model.predictor import ModelIdentity, Rung
from service.engine import Ladder, Step
from service.loading import describe
from service.models.served import ServedModel
from tests.service.fakes import RepeatLast


def make_model(name: str, version: str, digest: str = "sha256:0") -> ServedModel:
    """A model of this name."""
    predictor = RepeatLast()
    predictor.identity = ModelIdentity(name, version, digest)
    path = InferencePath(PathKind.EAGER, "float32", "torch")
    return ServedModel(Ladder((Step(Rung.FULL, predictor),)), describe(predictor), path)
