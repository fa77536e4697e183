"""`make demo` as a newcomer sees it: an address, a table, a command that works, a clean end."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from model.shared_library import find_compiler

REPOSITORY = Path(__file__).resolve().parents[2]

TABLE = "timestamp,cell_id,RRU.PrbTotDl\n" + "".join(
    f"2026-01-{5 + hour // 24:02d}T{hour % 24:02d}:00:00Z,My cell/1,{20 + hour % 24}\n"
    for hour in range(120)
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Demo:
    """A running demo and what it printed until it was ready."""

    def __init__(self, *arguments: str, compiled: str = "off") -> None:
        self.port = free_port()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rancast", "demo", "--port", str(self.port), *arguments],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "COLUMNS": "200", "RANCAST_COMPILED": compiled},
        )
        self.lines: list[str] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if "Ctrl-C" in line:
                break

    @property
    def output(self) -> str:
        return "".join(self.lines)

    def stop(self) -> int:
        """End it as `kill` would, and read what it still prints."""
        self.process.send_signal(signal.SIGTERM)
        self.lines.append(self.process.communicate(timeout=60)[0])
        return self.process.returncode


def listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
def test_the_simulated_network_is_forecast_and_everything_ends_in_order():
    demo = Demo()
    try:
        assert f"http://127.0.0.1:{demo.port}" in demo.output, demo.output
        assert "12 cells" in demo.output
        assert "quantile 0.5" in demo.output
        address = re.search(r"curl '(\S+)'", demo.output)
        assert address is not None
        answer = httpx.get(address[1], timeout=30).json()
        (forecast,) = answer["forecasts"]
        assert len(forecast["kpis"]["RRU.PrbTotDl"]["0.5"]) == 24
        assert forecast["rung"] == "full"
        assert answer["model"]["digest"].startswith("sha256:")
    finally:
        code = demo.stop()
    assert code == 0
    assert not listening(demo.port)


@pytest.mark.slow
def test_compiled_code_answers_where_it_has_been_made():
    if find_compiler() is None:
        pytest.skip("there is no C++ compiler")
    made = subprocess.run(
        [sys.executable, "-m", "rancast", "compile"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=550,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    demo = Demo(compiled="auto")
    try:
        metrics = httpx.get(f"http://127.0.0.1:{demo.port}/metrics", timeout=30).text
    finally:
        demo.stop()
    (info,) = re.findall(r"^rancast_inference_info\{(.*)\} 1.0$", metrics, re.MULTILINE)
    assert 'path="compiled"' in info
    assert 'rancast_compilations_total{result="cached"} 1.0' in metrics


@pytest.mark.slow
def test_the_users_own_table_is_forecast(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(TABLE, encoding="utf-8")
    demo = Demo("--data", str(path))
    try:
        assert "My cell/1" in demo.output, demo.output
    finally:
        code = demo.stop()
    assert code == 0


def test_a_taken_port_is_refused_in_one_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = subprocess.run(
            [sys.executable, "-m", "rancast", "demo", "--port", str(port)],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert result.returncode == 2
    assert f"port {port}" in result.stderr
    assert "Traceback" not in result.stderr
