"""Reports and runs that several tests look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from training.simulate.faults import FaultPlan, FaultRates
from training.simulate.network import NetworkSpec
from training.simulate.options import SimulateOptions
from training.simulate.report import Report
from training.simulate.reporter import Reporter

START = datetime(2026, 11, 2, tzinfo=UTC)


@pytest.fixture
def make_report() -> Callable[..., Report]:
    """A report of the first gNB from a local noon on, with faults where they are wanted."""

    def make(
        count: int = 1,
        *,
        faults: FaultRates | None = None,
        time_zone: str = "Europe/Madrid",
        period_ms: int = 900_000,
        start: datetime = START,
        repeat: int = 1,
        **spec: Any,
    ) -> Report:
        network = NetworkSpec(cells=2, seed=5, time_zone=time_zone, period_ms=period_ms, **spec)
        reporter = Reporter(network, FaultPlan(5, faults or FaultRates()))
        first = int(start.timestamp() * 1000) // period_ms
        report = reporter.daily(network.gnbs[0], first, count)
        assert report is not None
        return replace(report, repeat=repeat)

    return make


@pytest.fixture
def make_options(tmp_path: Path) -> Callable[..., SimulateOptions]:
    """Options of a small and quick simulation in a new directory."""

    def make(**changes: Any) -> SimulateOptions:
        defaults: dict[str, Any] = {
            "out": tmp_path / "pm",
            "cells": 4,
            "cells_per_gnb": 2,
            "days": 0.25,
            "periods": 3,
            "speed": float("inf"),
            "start": START,
        }
        return SimulateOptions(**{**defaults, **changes})

    return make
