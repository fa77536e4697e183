"""Small windows and a tiny forecaster for training tests."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from kpi.catalogue import Catalogue, load_catalogue
from kpi.window import KpiWindow
from model.config import ForecasterConfig

HOUR_MS = 3_600_000
MONDAY_MS = 1_767_571_200_000  # 2026-01-05T00:00Z


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C interrupts, also where the tests were started in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    return load_catalogue()


@pytest.fixture(scope="session")
def tiny_config() -> ForecasterConfig:
    return ForecasterConfig(
        width=16, layers=2, heads=2, feedforward=24, context_patches=4, horizon_patches=2
    )


@pytest.fixture(scope="session")
def make_window() -> Callable[..., KpiWindow]:
    """A window with daily life and noise, from a seed."""

    def make(
        seed: int = 0, *, steps: int = 400, kpis: tuple[str, ...] = ("RRU.PrbTotDl",)
    ) -> KpiWindow:
        rng = np.random.default_rng(seed)
        day = 50 + 30 * np.sin(2 * np.pi * np.arange(steps) / 24)
        values = day + 5 * rng.normal(size=(len(kpis), steps))
        return KpiWindow(f"cell={seed}", kpis, MONDAY_MS, HOUR_MS, values.astype(np.float32))

    return make


@pytest.fixture
def write_table(make_window: Callable[..., KpiWindow]) -> Callable[..., Path]:
    """A wide CSV of a few cells."""

    def write(path: Path, cells: int = 2, steps: int = 400) -> Path:
        lines = ["timestamp,cell_id,RRU.PrbTotDl"]
        for seed in range(cells):
            window = make_window(seed, steps=steps)
            times = np.datetime64(MONDAY_MS, "ms") + np.arange(steps) * np.timedelta64(1, "h")
            lines += [
                f"{time}Z,{window.cell},{value:.3f}"
                for time, value in zip(times, window.values[0], strict=True)
            ]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write
