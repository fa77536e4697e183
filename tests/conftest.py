"""Fixtures that every package's tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from model.checkpoint import Checkpoint
    from tests.cluster.cluster import Cluster

# A loaded machine is slow, and no test measures time. Developers get new examples in every run;
# an integration run that fails has to fail again.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", UNHURRIED)
settings.register_profile("repeat", UNHURRIED, derandomize=True)
settings.load_profile("repeat" if os.environ.get("CI") else "explore")

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real samples and traces that do not ship; tests skip where they are missing."""
    path = REPOSITORY.parent / "shared"
    if not (path / "samples").is_dir():
        pytest.skip("the real samples and traces lie beside the checkout, and are not there")
    return path


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A Kubernetes cluster, for tests marked as such; skips with the reason where there is none."""
    from tests.cluster.cluster import open_cluster

    with open_cluster() as found:
        yield found


@dataclass(frozen=True)
class CompiledTiny:
    """A tiny checkpoint and the cache that holds its compiled code."""

    checkpoint: Checkpoint
    file: Path
    cache: Path


@pytest.fixture(scope="session")
def compiled_tiny(tmp_path_factory: pytest.TempPathFactory) -> CompiledTiny:
    """Compiled for float32; half a minute, so all processes of a run share it."""
    import torch

    from kpi.catalogue import load_catalogue
    from model.attention.native.library import load
    from model.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
    from model.code_cache import CACHE_VARIABLE
    from model.compiled import Precision
    from model.compiled.build import compile_checkpoint
    from model.config import COPY_CANDIDATES, ForecasterConfig
    from model.forecaster import Forecaster
    from model.shared_library import find_compiler

    if find_compiler() is None:
        pytest.skip("there is no C++ compiler")
    load()  # is looked for once in a process, and not in the cache of this fixture
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "compiled"
    folder.mkdir(exist_ok=True)
    file, cache = folder / "tiny.safetensors", folder / "cache"
    with FileLock(folder / "lock"), pytest.MonkeyPatch.context() as patch:
        if not file.exists():
            torch.manual_seed(0)
            config = ForecasterConfig(
                width=32,
                layers=2,
                heads=2,
                feedforward=48,
                context_patches=8,
                horizon_patches=3,
                copies=COPY_CANDIDATES,
            )
            weights = Forecaster(config).state_dict()
            weights = {name: x + 0.1 * torch.randn_like(x) for name, x in weights.items()}
            version = load_catalogue().version
            save_checkpoint(Checkpoint("tiny", "0", config, weights, version), file)
        checkpoint = load_checkpoint(file)
        patch.setenv(CACHE_VARIABLE, str(cache))
        compile_checkpoint(checkpoint, Precision.FLOAT32)
    return CompiledTiny(checkpoint, file, cache)
