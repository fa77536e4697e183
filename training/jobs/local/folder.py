"""A local job on disk: what was asked for, what came of it, and whether somebody works at it.

    job.json       the record, written with the folder in one step
    attempt-1.log  what the first attempt printed, and so on
    outcome.json   how it ended, written in one step
    lock           locked (flock) by the supervisor and the attempt for as long as they live

The kernel drops a lock with the last process that holds it, so a job whose machine went down, or
whose supervisor was killed, is never taken for one that runs, whatever number its process had.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from model.files import make_folder, replace_file

RECORD, OUTCOME, LOCK, PROCESS = "job.json", "outcome.json", "lock", "process"


@dataclass(frozen=True)
class Record:
    """What was asked for.

    Attributes:
        run_id: The job's name.
        digest: Of its spec.
        command: Of each attempt.
        environment: Variables besides those of whoever submitted.
        directory: Working directory.
        retries: Attempts after the first.
        deadline_seconds: Longest time from the start, all attempts together.
        keep_seconds: How long it stays once it has ended.
        created_at: When it was submitted (ISO 8601).
    """

    run_id: str
    digest: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    directory: str
    retries: int
    deadline_seconds: float
    keep_seconds: float
    created_at: str


@dataclass(frozen=True)
class Outcome:
    """How a job ended.

    Attributes:
        exit_status: Of the last attempt, negative where a signal ended it; None if none started.
        failed_attempts: How many failed.
        past_deadline: Whether it was stopped because its time was over.
        finished_at: When (ISO 8601).
        error: Why an attempt could not be started, or None.
    """

    exit_status: int | None
    failed_attempts: int
    past_deadline: bool
    finished_at: str
    error: str | None = None


@dataclass(frozen=True)
class JobFolder:
    """The folder of one job."""

    path: Path

    @classmethod
    @contextmanager
    def create(cls, root: Path, record: Record) -> Iterator[tuple[JobFolder, int]]:
        """Make the folder with its record, locked, all at once.

        Yields:
            The folder, and the descriptor of its lock for processes to inherit.

        Raises:
            FileExistsError: There is a job of this run id.
        """
        make_folder(root)
        target = root / record.run_id
        fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=root))
        lock = None
        try:
            text = json.dumps(asdict(record), indent=2)
            (fresh / RECORD).write_text(text, encoding="utf-8")
            lock = os.open(fresh / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            # A folder takes the place of an empty one, and none that holds a record is empty.
            fresh.rename(target)
        except OSError as error:
            shutil.rmtree(fresh, ignore_errors=True)
            if lock is not None:
                os.close(lock)
            if target.exists():
                raise FileExistsError(f"{target} exists") from error
            raise
        try:
            yield cls(target), lock
        finally:
            os.close(lock)

    def record(self) -> Record:
        """What was asked for.

        Raises:
            FileNotFoundError: There is no such job.
            ValueError: The record is damaged.
            TypeError, KeyError: The same.
        """
        fields = _read(self.path / RECORD)
        _check_time(fields["created_at"])
        return Record(**{**fields, "command": tuple(fields["command"])})

    def outcome(self) -> Outcome | None:
        """How it ended; None where it has not.

        Raises:
            ValueError: The file is damaged.
            TypeError, KeyError: The same.
        """
        try:
            fields = _read(self.path / OUTCOME)
        except FileNotFoundError:
            return None
        _check_time(fields["finished_at"])
        return Outcome(**fields)

    def finish(self, outcome: Outcome) -> None:
        """Write how it ended, in one step."""
        replace_file(self.path / OUTCOME, json.dumps(asdict(outcome)).encode())

    def log(self, attempt: int) -> Path:
        """Where an attempt, counted from 1, prints to."""
        return self.path / f"attempt-{attempt}.log"

    def logs(self) -> tuple[Path, ...]:
        """The logs of all attempts so far, the first one first."""
        found = self.path.glob("attempt-*.log")
        return tuple(sorted(found, key=lambda path: int(path.stem.rpartition("-")[2])))

    def group(self) -> int | None:
        """The process group of the supervisor and the attempt, None before they are started."""
        try:
            return int((self.path / PROCESS).read_text(encoding="ascii"))
        except (FileNotFoundError, ValueError):
            return None

    def set_group(self, group: int) -> None:
        """Say which process group works at it."""
        (self.path / PROCESS).write_text(str(group), encoding="ascii")

    def started_at(self) -> datetime | None:
        """When the first attempt began."""
        try:
            stat = (self.path / PROCESS).stat()
        except FileNotFoundError:
            return None
        return datetime.fromtimestamp(stat.st_mtime).astimezone()

    def alive(self) -> bool:
        """Whether somebody works at it."""
        try:
            descriptor = os.open(self.path / LOCK, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            # Shared, so that those who only ask are not in each other's way.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def remove(self) -> None:
        """Remove it; it is gone at once, its files soon after."""
        aside = Path(tempfile.mkdtemp(prefix=".old-", dir=self.path.parent))
        try:
            self.path.rename(aside / self.path.name)
        except FileNotFoundError:
            pass
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def _check_time(text: str) -> None:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError(f"expected a time with its zone, got {text}")


def _read(path: Path) -> dict[str, Any]:
    value = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(value, dict):
        raise ValueError(f"expected an object in {path}, got {type(value).__name__}")
    return value
