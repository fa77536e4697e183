from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tiny_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of a tiny untrained forecaster: 64 samples of context, 32 of horizon."""
    import torch

    from model.checkpoint import Checkpoint, save_checkpoint
    from model.config import ForecasterConfig
    from model.forecaster import Forecaster

    torch.manual_seed(0)
    config = ForecasterConfig(
        width=32,
        layers=2,
        heads=2,
        feedforward=48,
        context_patches=4,
        horizon_patches=2,
    )
    file: Path = tmp_path_factory.mktemp("plan") / "tiny.safetensors"
    save_checkpoint(Checkpoint("tiny", "7", config, Forecaster(config).state_dict(), "test"), file)
    return file
