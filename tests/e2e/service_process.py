"""A service as a process of its own, which a test starts, asks and ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

# A service whose model says what it forecasts, and waits for the pipe that GATE names where a
# cell's name begins with `slow`.
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
        forecasts = super().predict(windows, horizon, levels)
        self.forget_warm_up()
        for window in windows:
            sys.stderr.write(f"event=forecast cell={window.cell}\\n")
        sys.stderr.flush()
        return forecasts

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
