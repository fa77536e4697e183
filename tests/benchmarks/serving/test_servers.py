"""Servers under test are processes; opponents answer what ours answers."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

from benchmarks.inference.shapes import HORIZON, LEVELS
from benchmarks.serving.bodies import MISSING_EVERY, arrow_body, cells, json_body
from benchmarks.serving.environments import BENTOML, LITSERVE, Environment
from benchmarks.serving.opponents.plain_fastapi import create_app
from benchmarks.serving.processes import (
    Cores,
    Server,
    ServerFailedError,
    our_service,
    process_tree,
    running,
)
from benchmarks.serving.soak import soak_requests
from benchmarks.serving.trivial import RepeatLast
from service.settings import Settings, load_settings
from tests.service.fakes import serving


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_a_server_that_ends_at_once_is_told_with_its_last_words() -> None:
    command = [sys.executable, "-c", "raise SystemExit('no port left')"]
    core = Cores.of_this_machine().server
    with (
        pytest.raises(ServerFailedError, match="no port left"),
        running(command, core, ready_path="/"),
    ):
        pytest.fail("it never ran")


def test_a_server_is_pinned_ready_and_ended() -> None:
    script = (
        "import http.server as h, sys\n"
        "s = h.HTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler)\n"
        "print(f'event=listening address=http://127.0.0.1:{s.server_port}', flush=True)\n"
        "s.serve_forever()"
    )
    core = Cores.of_this_machine().server
    with running([sys.executable, "-c", script], core, ready_path="/") as server:
        assert os.sched_getaffinity(server.pid) == {core}
        assert httpx.get(f"http://127.0.0.1:{server.port}/").status_code == 200
        assert server.memory_bytes() > 2**20
        assert server.threads() == 1
        assert server.descriptors() >= 3
        server.pause()
        server.resume()
    with pytest.raises(ProcessLookupError):
        os.kill(server.pid, 0)


def test_cpu_time_and_children_belong_to_a_process(sleeper: subprocess.Popen[bytes]) -> None:
    assert sleeper.pid in process_tree(os.getpid())
    assert process_tree(sleeper.pid) == [sleeper.pid]
    own = Server(os.getpid(), 0, Path())
    assert own.cpu_s() > 0


def test_our_service_is_measured_with_settings_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in our_service(accuracy_bytes="0").items():
        monkeypatch.setenv(name, value)
    settings = load_settings()
    assert settings.threads == 1
    assert not settings.access_log
    assert settings.accuracy_bytes == 0


def test_json_and_arrow_say_the_same() -> None:
    windows = cells(3, 200, missing=True)
    body, table = json.loads(json_body(windows)), pa.ipc.open_stream(arrow_body(windows)).read_all()
    assert json.loads(table.schema.metadata[b"rancast"])["horizon"] == body["horizon"] == HORIZON
    for series, row in zip(body["series"], table.to_pylist(), strict=True):
        (values,) = series["kpis"].values()
        assert series["cell"] == row["cell"]
        known = [number for number in range(200) if number % MISSING_EVERY]
        assert [values[n] for n in known] == pytest.approx([row["values"][n] for n in known])
        assert all(values[n] is None for n in range(0, 200, MISSING_EVERY))


def ask_plain(body: bytes) -> httpx.Response:
    async def run() -> httpx.Response:
        transport = httpx.ASGITransport(create_app(RepeatLast()))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
            headers = {"Content-Type": "application/json"}
            return await http.post("/v1/forecast", content=body, headers=headers)

    return asyncio.run(run())


def ask_ours(body: bytes) -> httpx.Response:
    async def run() -> httpx.Response:
        async with serving(Settings(), predictor=RepeatLast()) as client:
            headers = {"Content-Type": "application/json", "X-Latency-Budget-Ms": "60000"}
            return await client.http.post("/v1/forecast", content=body, headers=headers)

    return asyncio.run(run())


def test_plain_fastapi_answers_what_the_service_answers() -> None:
    body = json_body(cells(2, 300, missing=True))
    ours, theirs = ask_ours(body), ask_plain(body)
    assert ours.status_code == theirs.status_code == 200
    for own, other in zip(ours.json()["forecasts"], theirs.json()["forecasts"], strict=True):
        assert own["cell"] == other["cell"]
        assert own["rung"] == other["rung"] == "full"
        ((name, quantiles),) = own["kpis"].items()
        assert {*quantiles} == {str(level) for level in LEVELS}
        for level, values in quantiles.items():
            assert values == pytest.approx(other["kpis"][name][level], abs=1e-2)
            assert len(values) == HORIZON


def test_plain_fastapi_refuses_what_is_malformed() -> None:
    assert ask_plain(b'{"series": 1}').status_code == 422


def test_the_soak_has_sound_and_unsound_requests() -> None:
    requests = soak_requests(cells(32, 40))
    lines = {request.split(b" HTTP")[0].split(b"?")[0] for request in requests}
    assert {b"POST /v1/forecast", b"POST /v1/observations", b"GET /v1/nowhere"} <= lines
    assert sum(b"vnd.apache.arrow" in request for request in requests) >= 2
    assert requests == soak_requests(cells(32, 40))


@pytest.mark.parametrize("environment", [LITSERVE, BENTOML], ids=lambda one: one.folder.name)
def test_opponents_are_pinned_and_bring_no_tensor_library(environment: Environment) -> None:
    pins = environment.pins.read_text(encoding="utf-8").splitlines()
    names = [pin.partition("==")[0] for pin in pins if not pin.startswith("#")]
    assert environment.folder.name.removeprefix(".venv-") in names
    assert all(pin.startswith("#") or pin.count("==") == 1 for pin in pins)
    assert {"torch", "numpy"}.isdisjoint(names)


def test_an_environment_of_other_pins_is_not_built(tmp_path: Path) -> None:
    pins = tmp_path / "pins"
    pins.write_text("a==1\n", encoding="utf-8")
    environment = Environment("A", tmp_path / "venv", pins)
    assert not environment.is_built
    environment.folder.mkdir()
    (environment.folder / ".pins").write_text("a==1\n", encoding="utf-8")
    assert environment.is_built
    pins.write_text("a==2\n", encoding="utf-8")
    assert not environment.is_built
    assert "benchmarks.serving.environments" in environment.remedy
