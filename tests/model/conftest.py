"""A tiny forecaster with random weights, made in milliseconds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from kpi.catalogue import Catalogue, Kpi, KpiKind, load_catalogue
from kpi.window import KpiWindow
from model.checkpoint import Checkpoint
from model.config import ForecasterConfig
from model.forecaster import Forecaster
from model.transformer import TransformerPredictor

HOUR_MS = 3_600_000
MONDAY_MS = 1_767_571_200_000  # 2026-01-05T00:00Z


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    """Three KPIs: one with both limits, one that cannot be negative, one without limits."""
    kpis = {
        "Percent": Kpi("Percent", "%", KpiKind.PERCENT, 0.0, 100.0),
        "Volume": Kpi("Volume", "kbit", KpiKind.VOLUME, 0.0),
        "Free": Kpi("Free", "1", KpiKind.GAUGE),
    }
    return Catalogue("test", kpis, (), {name.casefold(): name for name in kpis})


@pytest.fixture(scope="session")
def tiny_config() -> ForecasterConfig:
    """Two blocks of width 32."""
    return ForecasterConfig(
        width=32, layers=2, heads=2, feedforward=48, context_patches=8, horizon_patches=3
    )


@pytest.fixture(scope="session")
def tiny_checkpoint(tiny_config: ForecasterConfig) -> Checkpoint:
    """Weights large enough that every input matters."""
    torch.manual_seed(0)
    forecaster = Forecaster(tiny_config)
    with torch.no_grad():
        for parameter in forecaster.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return Checkpoint(
        name="tiny",
        version="0",
        config=tiny_config,
        weights=forecaster.state_dict(),
        catalogue_version=load_catalogue().version,
        digest="sha256:0",
    )


@pytest.fixture(scope="session")
def predictor(tiny_checkpoint: Checkpoint, catalogue: Catalogue) -> TransformerPredictor:
    return TransformerPredictor(tiny_checkpoint, catalogue)


@pytest.fixture(scope="session")
def make_window() -> Callable[..., KpiWindow]:
    """A window with daily life and noise, from a seed."""

    def make(
        seed: int = 0,
        *,
        steps: int = 200,
        kpis: tuple[str, ...] = ("Free",),
        step_ms: int = HOUR_MS,
        time_zone: str = "UTC",
    ) -> KpiWindow:
        rng = np.random.default_rng(seed)
        hour = np.arange(steps) * step_ms / HOUR_MS
        day = 50 + 30 * np.sin(2 * np.pi * hour / 24)
        values = day + 5 * rng.normal(size=(len(kpis), steps))
        return KpiWindow(
            f"cell={seed}", kpis, MONDAY_MS, step_ms, values.astype(np.float32), time_zone
        )

    return make
