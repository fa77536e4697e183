"""The cache of the compiled checkpoint as the one in use."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from model.code_cache import CACHE_VARIABLE
from model.compiled import Artifact, Precision, artifact_folder, read_artifact
from model.compiled.target import Target
from tests.conftest import CompiledTiny


@pytest.fixture
def artifact(compiled_tiny: CompiledTiny, monkeypatch: pytest.MonkeyPatch) -> Artifact:
    """The compiled code itself; not to be changed."""
    monkeypatch.setenv(CACHE_VARIABLE, str(compiled_tiny.cache))
    folder = artifact_folder(compiled_tiny.checkpoint, Precision.FLOAT32)
    return read_artifact(folder, Target.of(compiled_tiny.checkpoint, Precision.FLOAT32))


@pytest.fixture
def copied(artifact: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the artifact's folder, in a cache of its own that is the one in use."""
    cache = tmp_path / "cache"
    folder = cache / artifact.folder.parent.name / artifact.folder.name
    shutil.copytree(artifact.folder, folder)
    monkeypatch.setenv(CACHE_VARIABLE, str(cache))
    return folder
