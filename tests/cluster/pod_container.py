"""A container of a pod as a process of this machine, its log, and what the API is told of both."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.cluster.api import Object

# What a kubelet hands on of a termination message, and of a log in its place.
_MESSAGE_BYTES = 4096
_LOG_BYTES = 2048
_LOG_LINES = 80
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 5.0
# Variable by which the processes of a run are known, whatever group or session they went into.
_MARK = "PROCESS_NODE_RUN"


def now() -> str:
    """The time as the API writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _stamp() -> bytes:
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    whole = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{nanoseconds:09d}Z".encode()


@dataclass(frozen=True)
class Program:
    """What a container runs.

    Attributes:
        words: Command and arguments, for this machine.
        environment: All variables.
        directory: Where it starts.
        message: File in which it may say why it ended.
    """

    words: Sequence[str]
    environment: Mapping[str, str]
    directory: Path
    message: Path


class Run:
    """One run of a program; each line of its output is kept with the time at which it came."""

    def __init__(self, program: Program, log: Path) -> None:
        self.started_at = now()
        self._mark = f"{_MARK}={secrets.token_hex(8)}"
        name, _, value = self._mark.partition("=")
        self._process = subprocess.Popen(
            program.words,
            env={**program.environment, name: value},
            cwd=program.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._log = log
        self._pump = threading.Thread(target=self._keep_output, daemon=True)
        self._pump.start()

    @property
    def process_id(self) -> int:
        """Of the program."""
        return self._process.pid

    def _keep_output(self) -> None:
        output = self._process.stdout
        assert output is not None
        with output, self._log.open("ab", buffering=0) as log:
            for line in output:
                # The last line may lack its end, which the readers of logs go by.
                log.write(_stamp() + b" " + line.removesuffix(b"\n") + b"\n")

    def poll(self) -> int | None:
        """Exit code as a container has it, 128 and more for signals; None while it runs."""
        status = self._process.poll()
        if status is None:
            return None
        # Nothing outlives the first process of a container, and its output ends with it.
        self.send(signal.SIGKILL)
        _kill_marked(self._mark.encode())
        self._pump.join(10)
        return status if status >= 0 else 128 - status

    def send(self, number: int) -> None:
        """Send a signal to all its processes."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


def _kill_marked(mark: bytes) -> None:
    """Kill every process of ours that bears a mark."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)


class Container:
    """A container through all its runs.

    Attributes:
        spec: As the pod has it.
        folder: Of its logs.
        restarts: Runs before the present one.
        started: Whether the startup probe, where there is one, has passed.
        ready: Whether it is ready.
        fault: Reason to give for its next end, where something else than itself ended it.
    """

    def __init__(self, spec: Object, folder: Path) -> None:
        self.spec = spec
        self.folder = folder
        self.restarts = 0
        self.started = False
        self.ready = False
        self.fault: str | None = None
        self._run: Run | None = None
        self._waiting: Object = {"reason": "ContainerCreating"}
        self._ended: Object | None = None
        self._last: Object | None = None
        self._pause_s = _FIRST_PAUSE_S
        self._again_at = 0.0

    @property
    def name(self) -> str:
        """In its pod."""
        return str(self.spec["name"])

    @property
    def running(self) -> bool:
        """Whether its process runs."""
        return self._run is not None

    @property
    def process_id(self) -> int | None:
        """Of its process, while that runs."""
        return None if self._run is None else self._run.process_id

    @property
    def exit_code(self) -> int | None:
        """Of a container that has ended for good or waits to be started again."""
        return None if self._ended is None else int(self._ended["exitCode"])

    def log(self, *, previous: bool = False) -> Path:
        """The log of the present run, or of the one before."""
        return self.folder / f"{self.name}.{self.restarts - previous}.log"

    def wait_because(self, reason: str, message: str) -> None:
        """Say why it cannot start."""
        self._waiting = {"reason": reason, "message": message}

    def start(self, program: Program) -> None:
        """Start its program; a program that is not there ends it with status 128."""
        if self._ended is not None:
            self._last, self._ended = self._ended, None
            self.restarts += 1
        self.started = self.ready = False
        self.fault = None
        self._message = program.message
        program.message.unlink(missing_ok=True)
        self.log().touch()
        try:
            self._run = Run(program, self.log())
        except OSError as error:
            self._end(128, now(), "StartError", str(error))

    def poll(self) -> bool:
        """Take note of its end; whether it has ended just now."""
        if self._run is None:
            return False
        status = self._run.poll()
        if status is None:
            return False
        started, self._run = self._run.started_at, None
        fault, self.fault = self.fault, None
        self._end(status, started, fault or ("Error" if status else "Completed"))
        return True

    def send(self, number: int) -> None:
        """Send a signal, where it runs."""
        if self._run is not None:
            self._run.send(number)

    def pause(self) -> None:
        """Wait before the next run, longer each time."""
        self._again_at = time.monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)

    @property
    def may_start_again(self) -> bool:
        """Whether the pause is over."""
        return time.monotonic() >= self._again_at

    def _end(self, status: int, started_at: str, reason: str, message: str = "") -> None:
        self.ready = False
        self._ended = {
            "exitCode": status,
            "reason": reason,
            "message": message or self._said(status),
            "startedAt": started_at,
            "finishedAt": now(),
        }

    def _said(self, status: int) -> str:
        """The message that it left, or the end of its log where it asks for that."""
        if self._message.is_file():
            left = self._message.read_bytes()[-_MESSAGE_BYTES:].decode(errors="replace")
            if left:
                return left
        policy = self.spec.get("terminationMessagePolicy")
        if status and policy == "FallbackToLogsOnError":
            lines = self.log().read_bytes().splitlines(keepends=True)[-_LOG_LINES:]
            text = b"".join(line.partition(b" ")[2] for line in lines)
            return text[-_LOG_BYTES:].decode(errors="replace")
        return ""

    def status(self, *, final: bool) -> Object:
        """What the API is told.

        Args:
            final: Whether it will not be started again.
        """
        if self._run is not None:
            state: Object = {"running": {"startedAt": self._run.started_at}}
        elif self._ended is None:
            state = {"waiting": self._waiting}
        elif final:
            state = {"terminated": self._ended}
        else:
            state = {"waiting": {"reason": "CrashLoopBackOff", "message": "started again soon"}}
        last = self._last if self._run or final or not self._ended else self._ended
        told: Object = {
            "name": self.name,
            "image": self.spec["image"],
            "imageID": "",
            "ready": self.ready,
            "started": self.started,
            "restartCount": self.restarts,
            "state": state,
        }
        if last is not None:
            told["lastState"] = {"terminated": last}
        return told
