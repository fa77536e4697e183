"""The service as a process: the port, the signals, what a kill leaves behind."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from tests.service.fakes import forecast_request, series

REPOSITORY = Path(__file__).resolve().parents[2]

# A service whose model waits, where GATE names a file, until that file exists.
SCRIPT = """
import os, sys, threading
from service.server import serve
from service.settings import load_settings
from tests.service.fakes import RepeatLast

class Gated(RepeatLast):
    def predict(self, windows, horizon, levels):
        if windows[0].cell.startswith("slow"):
            sys.stderr.write("event=inferring\\n")
            sys.stderr.flush()
            with open(os.environ["GATE"]) as gate:
                gate.read()
        return super().predict(windows, horizon, levels)

sys.exit(serve(load_settings(), predictor=Gated()))
"""


class Service:
    """A running process, its address, and its log as far as it was read."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.log: list[str] = []
        self._grown = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.address = re.findall(r"address=(\S+)", self.wait_for("event=listening"))[0]

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._grown:
                self.log.append(line)
                self._grown.notify_all()
        with self._grown:
            self.log.append("event=end_of_log")
            self._grown.notify_all()

    def wait_for(self, text: str, seconds: float = 60) -> str:
        """The first line of the log that holds `text`."""

        def found() -> bool:
            return any(text in line or "end_of_log" in line for line in self.log)

        with self._grown:
            assert self._grown.wait_for(found, seconds), f"no {text!r} in {self.log}"
            lines = [line for line in self.log if text in line]
            assert lines, f"the process ended without {text!r}: {self.log}"
            return lines[0]

    def end(self, sig: signal.Signals) -> int:
        """Send a signal and wait for the exit code."""
        self.process.send_signal(sig)
        return self.process.wait(60)


@contextmanager
def running(**variables: str) -> Iterator[Service]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("RANCAST_")}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        cwd=REPOSITORY,
        env={**kept, "RANCAST_PORT": "0", "PYTHONPATH": str(REPOSITORY), **variables},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        service = Service(process)
        service.wait_for("event=ready")
        yield service
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait(60)
        service._reader.join(60)
        assert process.stderr is not None
        process.stderr.close()


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A pipe: whoever opens it to read waits until someone opens it to write."""
    path = tmp_path / "gate"
    os.mkfifo(path)
    return path


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
