"""The service as a process: the port, the signals, what a kill leaves behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.e2e.service_process import REPOSITORY, running
from tests.service.fakes import forecast_request, series


def test_sigterm_answers_what_was_accepted_and_refuses_what_comes(gate: Path) -> None:
    with running(GATE=str(gate), RANCAST_PROFILE="non-rt") as service:
        slow = forecast_request(series=[series(cell="slow")], budget_ms=60_000)
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(
                httpx.post, f"{service.address}/v1/forecast", json=slow, timeout=60
            )
            service.wait_for("event=inferring")
            service.process.send_signal(signal.SIGTERM)
            service.wait_for("Shutting down")
            with pytest.raises(httpx.TransportError):
                httpx.get(f"{service.address}/readyz", timeout=5)
            gate.write_text("go on")
            assert answer.result(60).status_code == 200
        assert service.process.wait(60) == 0
        service.wait_for("event=stopped")


def test_an_idle_service_ends_with_0_on_sigterm_and_sigint() -> None:
    for sig in (signal.SIGTERM, signal.SIGINT):
        with running() as service:
            assert httpx.get(f"{service.address}/readyz").status_code == 200
            assert service.end(sig) == 0


def test_a_service_on_a_taken_port_ends_with_2_and_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        kept = {k: v for k, v in os.environ.items() if not k.startswith("RANCAST_")}
        ended = subprocess.run(
            [sys.executable, "-m", "service"],
            cwd=REPOSITORY,
            env={**kept, "RANCAST_PORT": str(taken.getsockname()[1])},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert "in use" in line


def test_what_was_acknowledged_is_there_after_a_kill(tmp_path: Path) -> None:
    journal = str(tmp_path / "journal.sqlite")
    with running(RANCAST_JOURNAL_PATH=journal) as service:
        kept = httpx.post(
            f"{service.address}/v1/observations",
            json={"series": [series(cell="a/b", kpis={"RRU.PrbTotDl": [1, 2]})]},
        )
        assert kept.json()["accepted"] == 2
        assert service.end(signal.SIGKILL) == -signal.SIGKILL
    with running(RANCAST_JOURNAL_PATH=journal) as service:
        found = httpx.get(f"{service.address}/v1/cells/a%2Fb/samples")
        assert list(found.json()["kpis"].values()) == [[1, 2]]


def test_a_chunked_body_over_the_limit_is_refused_over_a_real_connection() -> None:
    with running(RANCAST_MAX_BODY_BYTES="2048") as service:
        answer = httpx.post(
            f"{service.address}/v1/forecast",
            content=(b" " * 1024 for _ in range(8)),
            headers={"content-type": "application/json"},
        )
        assert answer.status_code == 413
        assert httpx.get(f"{service.address}/healthz").status_code == 200
