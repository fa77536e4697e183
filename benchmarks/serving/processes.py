"""Servers as processes of their own, pinned to one core, and what they cost."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
NOTHING: Mapping[str, str] = MappingProxyType({})
_START_S = 180.0
_STOP_S = 30.0
_POLL_S = 0.05
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_ADDRESS = re.compile(r"event=listening address=http://127\.0\.0\.1:(\d+)")


class ServerFailedError(Exception):
    """A server did not start; the message ends in what it said last."""


@dataclass(frozen=True)
class Cores:
    """Which core is whose.

    Attributes:
        server: Of the server, all of its processes and threads.
        generator: Of the load generator.
    """

    server: int
    generator: int

    @staticmethod
    def of_this_machine() -> Cores:
        """The first and the last that this process may use; the same one where there is one."""
        usable = sorted(os.sched_getaffinity(0))
        return Cores(usable[0], usable[-1])


@dataclass(frozen=True)
class Server:
    """A server that answers.

    Attributes:
        pid: Of its first process.
        port: Where it listens, on 127.0.0.1.
        log: What it writes.
    """

    pid: int
    port: int
    log: Path

    def pause(self) -> None:
        """Stop it where it stands, so that its timers cost nobody anything."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        for pid in process_tree(self.pid):
            _send(pid, number)

    def cpu_s(self) -> float:
        """CPU seconds that it and the processes it started have taken."""
        return sum(_cpu_s(pid) for pid in process_tree(self.pid))

    def memory_bytes(self) -> int:
        """Resident memory of its first process."""
        pages = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * _PAGE_BYTES

    def threads(self) -> int:
        """Threads of its first process."""
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def descriptors(self) -> int:
        """Open file descriptors of its first process."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))


@contextmanager
def running(
    command: Sequence[str | Path],
    core: int,
    *,
    ready_path: str,
    port: int | None = None,
    environment: Mapping[str, str] = NOTHING,
) -> Iterator[Server]:
    """A server that runs until the block ends.

    Args:
        command: What starts it.
        core: What it is pinned to.
        ready_path: Answers 200 as soon as it can be used.
        port: Where it listens; None: it says so in its log, as ours does.
        environment: Variables that it gets besides those of this process.

    Raises:
        ServerFailedError: It ended, or was not ready in time.
    """
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as written:
            process = _start(command, core, environment, written)
        try:
            ends_s = time.monotonic() + _START_S
            while port is None:
                port = _said_port(log)
                _wait(process, log, ends_s)
            while not _answers(port, ready_path):
                _wait(process, log, ends_s)
            yield Server(process.pid, port, log)
        finally:
            _stop(process)


def our_service(**settings: str) -> dict[str, str]:
    """Environment of our service as it is measured: one thread, no access log, a free port.

    Args:
        settings: Settings by name, without their prefix.
    """
    defaults = {
        "PORT": "0",
        "PROFILE": "near-rt",
        "THREADS": "1",
        "COMPILED": "cached",
        "ACCESS_LOG": "false",
        "LOG_LEVEL": "info",
    }
    chosen = defaults | {name.upper(): value for name, value in settings.items()}
    return {f"RANCAST_{name}": value for name, value in chosen.items()}


def python_module(name: str, *arguments: str, interpreter: Path | None = None) -> list[str]:
    """The command that runs a module of ours."""
    return [str(interpreter or sys.executable), "-m", name, *arguments]


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def process_tree(pid: int) -> list[int]:
    """A process and all that descend from it."""
    found, at = [pid], 0
    while at < len(found):
        for task in Path(f"/proc/{found[at]}/task").glob("*/children"):
            try:
                found += [int(child) for child in task.read_text(encoding="ascii").split()]
            except OSError:
                continue
        at += 1
    return found


def _cpu_s(pid: int) -> float:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0.0
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S


def _start(
    command: Sequence[str | Path], core: int, environment: Mapping[str, str], log: IO[bytes]
) -> subprocess.Popen[bytes]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RANCAST_")}
    caches = {name: os.environ[name] for name in ("RANCAST_CACHE_DIR",) if name in os.environ}
    process = subprocess.Popen(
        [str(part) for part in command],
        cwd=ROOT,
        env={**kept, **caches, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    # Before it has imported anything, so that each of its threads inherits it.
    os.sched_setaffinity(process.pid, {core})
    return process


def _said_port(log: Path) -> int | None:
    found = _ADDRESS.search(log.read_text(encoding="utf-8", errors="replace"))
    return None if found is None else int(found[1])


def _answers(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_STOP_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _wait(process: subprocess.Popen[bytes], log: Path, ends_s: float) -> None:
    """Wait a little for a start.

    Raises:
        ServerFailedError: It ended, or time is up.
    """
    if process.poll() is None and time.monotonic() < ends_s:
        time.sleep(_POLL_S)
        return
    said = log.read_text(encoding="utf-8", errors="replace")[-2000:]
    raise ServerFailedError(f"the server did not start (status {process.poll()}): {said}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End it and what it started, even where some of it stands still."""
    family = process_tree(process.pid)
    process.send_signal(signal.SIGTERM)
    for pid in family:
        _send(pid, signal.SIGCONT)
    try:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_S)
    finally:
        for pid in family[1:] if process.returncode is not None else family:
            _send(pid, signal.SIGKILL)
        process.wait(_STOP_S)


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
