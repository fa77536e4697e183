"""The demo waits for the service's data, shows one forecast and says what went wrong."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Callable
from typing import Any, cast

import httpx
import pytest
from rich.console import Console

from service import demo
from service.errors import StartupError

PRB = "RRU.PrbTotDl"
CELLS = {
    "cells": [
        {"cell": "Short/1", "kpis": [PRB], "first": "2026-01-01", "last": "2026-01-02"},
        {"cell": "Long/1", "kpis": ["Load", PRB], "first": "2026-01-01", "last": "2026-01-03"},
        {"cell": "Other/1", "kpis": ["Load"], "first": "2026-01-01", "last": "2026-01-09"},
    ],
    "next": None,
}
FORECAST = {
    "forecasts": [
        {
            "cell": "Long/1",
            "start": "2026-01-03T00:00:00Z",
            "step_seconds": 900.0,
            "kpis": {PRB: {"0.1": [None, 1.0], "0.5": [None, 2.0]}},
        }
    ]
}

Answer = Callable[[httpx.Request], httpx.Response]


class Running:
    """A service that has not ended."""

    returncode = None

    def poll(self) -> None:
        return None


@pytest.fixture
def service(monkeypatch):
    """Let the demo's requests be answered by a function."""
    genuine = httpx.Client

    def install(answer: Answer) -> demo._Demo:
        transport = httpx.MockTransport(answer)
        monkeypatch.setattr(
            "service.demo.httpx.Client", lambda **options: genuine(transport=transport, **options)
        )
        process = cast("subprocess.Popen[bytes]", Running())
        return demo._Demo("http://127.0.0.1:1", process, ())

    return install


def answers(**bodies: Any) -> Answer:
    """Answer each path that ends in a name with its body, or with its status."""

    def answer(request: httpx.Request) -> httpx.Response:
        body = bodies[request.url.path.rsplit("/", 1)[-1]]
        if isinstance(body, int):
            return httpx.Response(body)
        return httpx.Response(200, json=body)

    return answer


def shown(running: demo._Demo) -> str:
    console = Console(file=io.StringIO(), record=True, width=200)
    demo._show(running, console)
    return console.export_text()


def test_the_longest_history_of_the_best_known_kpi_is_shown(service):
    text = shown(service(answers(cells=CELLS, forecast=FORECAST)))
    assert "Long/1" in text
    assert "(3 cells)" in text
    assert "/v1/cells/Long%2F1/forecast" in text
    assert "│    1 │            - │            - │" in text


def test_more_cells_than_are_listed_are_not_denied(service):
    text = shown(service(answers(cells={**CELLS, "next": "abc"}, forecast=FORECAST)))
    assert "(3 or more cells)" in text


def test_a_service_that_does_not_forecast_is_told_in_words(service):
    with pytest.raises(StartupError, match=r"did not answer /v1/cells/Long.*504"):
        shown(service(answers(cells=CELLS, forecast=504)))


def test_waiting_goes_on_until_the_histories_stand_still(service, monkeypatch):
    monkeypatch.setattr("service.demo.time.sleep", lambda _: None)
    grown = {**CELLS, "cells": [{**CELLS["cells"][0], "last": "2026-01-04"}]}  # type: ignore[index]
    states = iter([503, 503, CELLS, grown, grown])
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        if request.url.path == "/readyz":
            return httpx.Response(200)
        return answers(cells=next(states))(request)

    demo._wait_for_cells(service(answer), Console(file=io.StringIO()))
    assert asked.count("/v1/cells") == 5


def test_a_service_without_cells_is_given_up_in_the_end(service, monkeypatch):
    monkeypatch.setattr("service.demo.time.sleep", lambda _: None)
    clock = iter(range(0, 10_000, 100))
    monkeypatch.setattr("service.demo.time.monotonic", lambda: float(next(clock)))
    with pytest.raises(StartupError, match="no cell was read"):
        demo._wait_for_cells(service(answers(readyz=503)), Console(file=io.StringIO()))
