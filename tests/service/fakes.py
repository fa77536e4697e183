"""Stand-ins for time and for the model, and an application around them."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
from fastapi import FastAPI

from kpi.catalogue import Catalogue, Kpi, KpiKind
from kpi.store import KpiStore
from kpi.window import KpiWindow
from model.predictor import ContextSpan, Forecast, ModelIdentity, Predictor, Rung
from service.app import create_app
from service.clock import Timer
from service.container import Services
from service.settings import Settings

IDENTITY = ModelIdentity("fake", "1.2.3", "sha256:feed")
NOON_MS = 1_793_534_400_000  # 2026-11-01T12:00:00Z


@dataclass(eq=False)
class FakeTimer:
    instant_s: float
    callback: Callable[[], None]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeClock:
    """Stands still until it is told to go on; calls what became due."""

    def __init__(self, now_ms: int = NOON_MS) -> None:
        self._s = 1000.0
        self._ms = now_ms
        self.timers: list[FakeTimer] = []

    def monotonic_s(self) -> float:
        return self._s

    def now_ms(self) -> int:
        return self._ms

    def call_at(self, instant_s: float, callback: Callable[[], None]) -> Timer:
        timer = FakeTimer(instant_s, callback)
        self.timers.append(timer)
        return timer

    def step_wall(self, seconds: float) -> None:
        """Set the wall clock, as an operator or a time server does; nothing becomes due by it."""
        self._ms += round(seconds * 1000)

    def advance(self, seconds: float) -> None:
        self._s += seconds
        self._ms += round(seconds * 1000)
        due = [t for t in self.timers if t.instant_s <= self._s and not t.cancelled]
        self.timers = [t for t in self.timers if t.instant_s > self._s and not t.cancelled]
        for timer in due:
            timer.callback()


class RepeatLast:
    """Forecasts the last known value of each KPI, plus the level; NaN where there is none.

    `gate` holds every call until it is set; `entered` says that a call has begun.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[list[str], int, tuple[float, ...]]] = []
        self.windows: list[KpiWindow] = []
        self.failing_cells: set[str] = set()
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Semaphore(0)
        self.identity = IDENTITY
        self.max_horizon = 48
        self.level_range = (0.05, 0.95)
        self.on_call: Callable[[], None] = lambda: None

    def forget_warm_up(self) -> None:
        """Forget every call so far."""
        while self.entered.acquire(blocking=False):
            pass
        self.calls.clear()
        self.windows.clear()

    def predict(
        self, windows: Sequence[KpiWindow], horizon: int, levels: Sequence[float]
    ) -> list[Forecast]:
        self.calls.append(([w.cell for w in windows], horizon, tuple(levels)))
        self.windows += windows
        self.entered.release()
        assert self.gate.wait(30)
        self.on_call()
        if bad := self.failing_cells & {w.cell for w in windows}:
            raise RuntimeError(f"cannot forecast {bad}")
        return [_repeat(window, horizon, tuple(levels)) for window in windows]


def _repeat(window: KpiWindow, horizon: int, levels: tuple[float, ...]) -> Forecast:
    last = np.full(len(window.kpis), np.nan, dtype=np.float32)
    for row, values in enumerate(window.values):
        known = values[~np.isnan(values)]
        if len(known):
            last[row] = known[-1]
    values = last[:, None, None] + np.zeros((1, horizon, 1)) + np.array(levels)
    known_columns = np.flatnonzero(~np.isnan(window.values).all(axis=0))
    newest_ms = (
        window.start_ms + (int(known_columns[-1]) + 1) * window.step_ms
        if len(known_columns)
        else None
    )
    return Forecast(
        cell=window.cell,
        kpis=window.kpis,
        start_ms=window.end_ms,
        step_ms=window.step_ms,
        levels=levels,
        values=values.astype(np.float32),
        model=IDENTITY,
        rung=Rung.FULL,
        context=ContextSpan(window.start_ms, window.end_ms, window.missing_ratio, newest_ms),
    )


def small_catalogue() -> Catalogue:
    """Two KPIs, one of them with a limit and an alias."""
    prb = Kpi("RRU.PrbTotDl", "%", KpiKind.PERCENT, 0.0, 100.0, aliases=("pmPrbUsedDl",))
    users = Kpi("DRB.MeanActiveUeDl", "1", KpiKind.GAUGE, 0.0)
    spellings = {
        "rru.prbtotdl": prb.name,
        "pmprbuseddl": prb.name,
        "drb.meanactiveuedl": users.name,
    }
    return Catalogue("test", {prb.name: prb, users.name: users}, (), spellings)


@dataclass
class Client:
    """A running application, its parts, and a client that talks to it in process."""

    http: httpx.AsyncClient
    app: FastAPI
    services: Services
    clock: FakeClock

    async def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        return await self.http.post(path, json=body, headers=headers)

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.http.get(path, headers=headers)

    async def metric(self, name: str, **labels: str) -> float:
        """Sum of a metric's samples that carry these labels."""
        total = 0.0
        for family in self.services.metrics._registry.collect():
            for sample in family.samples:
                if sample.name == name and labels.items() <= sample.labels.items():
                    total += sample.value
        return total


@asynccontextmanager
async def serving(
    settings: Settings | None = None,
    *,
    predictor: Predictor | None = None,
    store: KpiStore | None = None,
    clock: FakeClock | None = None,
) -> AsyncIterator[Client]:
    """An application with its lifespan, started."""
    clock = clock or FakeClock()
    app = create_app(
        settings or Settings(),
        predictor=predictor or RepeatLast(),
        store=store,
        clock=clock,
    )
    app.state.services.catalogue = small_catalogue()
    async with app.router.lifespan_context(app):
        await app.state.lifecycle.started()
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
            yield Client(http, app, app.state.services, clock)


def series(**changes: Any) -> dict[str, Any]:
    """One sound series; `changes` replace its fields."""
    return {
        "cell": "ManagedElement=1,NRCellDU=32",
        "start": "2026-11-01T10:00:00Z",
        "step_seconds": 900,
        "kpis": {"RRU.PrbTotDl": [12.0, None, 15.5], "DRB.MeanActiveUeDl": [3, 4, 4]},
        **changes,
    }


def forecast_request(**changes: Any) -> dict[str, Any]:
    """One sound request; `changes` replace its fields."""
    return {"series": [series()], "horizon": 2, **changes}
