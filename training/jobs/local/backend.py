"""Jobs as processes of this machine: they outlive the shell that submitted them.

All that is known of a job lies in its folder, so any process of the same user finds it again.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from training.jobs.backend import LogLine, Submission
from training.jobs.errors import BackendError, JobConflictError, JobNotFoundError, JobSpecError
from training.jobs.exits import exit_problem
from training.jobs.local.folder import JobFolder, Outcome, Record
from training.jobs.local.supervisor import GRACE_SECONDS
from training.jobs.local.tail import follow_file, last_lines
from training.jobs.names import check_run_id
from training.jobs.program import on_one_node
from training.jobs.progress import Progress, last_words, progress_of
from training.jobs.spec import JobSpec
from training.jobs.status import Cause, JobStatus, Phase, Problem

LOOK_SECONDS = 0.1

_DAMAGE = (OSError, ValueError, TypeError, KeyError)
"""What reading a job's folder raises where somebody has changed it."""

KILLED_SECONDS = 10.0
"""How long the kernel may take to end processes that were killed."""


@dataclass(frozen=True)
class LocalBackend:
    """Jobs of this machine.

    Attributes:
        root: Folder with one folder a job.
        python: Python to run them with.
    """

    root: Path
    python: str = sys.executable

    @property
    def name(self) -> str:
        """`local`."""
        return "local"

    def submit(self, spec: JobSpec) -> Submission:
        """See `TrainingBackend.submit`. What ended longer ago than it is kept is removed."""
        if spec.nodes != 1 or spec.pod is not None:
            raise JobSpecError(
                "expected one node and no pod of a local job; jobs of several nodes, and images, "
                "volumes and Secrets, are the cluster's (--backend kubernetes)"
            )
        self._remove_old()
        record = Record(
            run_id=spec.run_id,
            digest=spec.digest,
            command=tuple(on_one_node(self.python, spec)),
            environment=dict(spec.environment),
            directory=spec.directory or str(Path.cwd()),
            retries=spec.retries,
            deadline_seconds=spec.deadline_seconds,
            keep_seconds=spec.keep_seconds,
            created_at=datetime.now(UTC).isoformat(),
        )
        try:
            with JobFolder.create(self.root, record) as (folder, lock):
                self._start(folder, lock)
        except FileExistsError:
            folder = self._folder(spec.run_id)
            with _undamaged(folder):
                there = folder.record()
            if there.digest != spec.digest:
                raise JobConflictError(
                    f"another job is called {spec.run_id}; give this one another --run-id, or "
                    f"remove that one: rancast job cancel {spec.run_id}"
                ) from None
            return Submission(self.status(spec.run_id), fresh=False)
        except OSError as error:
            raise BackendError(f"no job can be kept in {self.root}: {error}") from error
        return Submission(self.status(spec.run_id), fresh=True)

    def list(self) -> tuple[JobStatus, ...]:
        """See `TrainingBackend.list`."""
        found = [self._listed(folder) for folder in self._folders()]
        jobs = [status for status in found if status is not None]
        return tuple(sorted(jobs, key=lambda status: status.created_at, reverse=True))

    def status(self, run_id: str) -> JobStatus:
        """See `TrainingBackend.status`."""
        status = self._status(self._folder(run_id), told=True)
        if status is None:
            raise JobNotFoundError(f"no job is called {run_id} in {self.root}")
        return status

    @contextmanager
    def logs(self, run_id: str, *, follow: bool = False) -> Iterator[Iterator[LogLine]]:
        """See `TrainingBackend.logs`."""
        folder = self._folder(run_id)
        if not folder.path.is_dir():
            raise JobNotFoundError(f"no job is called {run_id} in {self.root}")
        yield self._lines(folder, follow)

    def cancel(self, run_id: str) -> None:
        """See `TrainingBackend.cancel`; here the processes are gone when it returns."""
        folder = self._folder(run_id)
        self._end(folder, signal.SIGTERM, GRACE_SECONDS + 1)
        self._end(folder, signal.SIGKILL, KILLED_SECONDS)
        if folder.alive():
            raise BackendError(f"the processes of {run_id} do not end; job kept in {folder.path}")
        if folder.path.exists():
            folder.remove()

    def _start(self, folder: JobFolder, lock: int) -> None:
        module = "training.jobs.local.supervisor"
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, str(folder.path), str(lock)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(lock,),
            start_new_session=True,
        )
        folder.set_group(process.pid)
        # Whoever submits and stays, as a service would, has to take note of the end.
        threading.Thread(target=process.wait, name=f"job {folder.path.name}", daemon=True).start()

    def _folder(self, run_id: str) -> JobFolder:
        return JobFolder(self.root / check_run_id(run_id))

    def _folders(self) -> Iterator[JobFolder]:
        if self.root.is_dir():
            for path in self.root.iterdir():
                if not path.name.startswith(".") and path.is_dir():
                    yield JobFolder(path)

    def _listed(self, folder: JobFolder) -> JobStatus | None:
        """As `_status`; a damaged folder is shown as one, so that the others are shown too."""
        try:
            return self._status(folder)
        except BackendError as error:
            try:
                seconds = folder.path.stat().st_mtime
            except FileNotFoundError:
                return None
            problem = Problem(Cause.DAMAGED, str(error))
            made_at = datetime.fromtimestamp(seconds, UTC)
            return JobStatus(folder.path.name, self.name, Phase.FAILED, made_at, problem=problem)

    def _status(self, folder: JobFolder, told: bool = False) -> JobStatus | None:
        # The lock is asked first: a job that ends in between has written its outcome by then.
        alive = folder.alive()
        try:
            with _undamaged(folder):
                record, outcome = folder.record(), folder.outcome()
        except BackendError:
            if folder.path.is_dir():
                raise
            return None
        lines = last_lines(logs[-1]) if (logs := folder.logs()) else []
        progress = progress_of(lines)
        return JobStatus(
            run_id=record.run_id,
            backend=self.name,
            phase=_phase(alive, outcome, bool(logs)),
            created_at=datetime.fromisoformat(record.created_at),
            started_at=folder.started_at(),
            finished_at=datetime.fromisoformat(outcome.finished_at) if outcome else None,
            failed_attempts=outcome.failed_attempts if outcome else max(0, len(logs) - 1),
            problem=_problem(record, alive, outcome, last_words(lines), progress),
            progress=progress if told else None,
        )

    def _lines(self, folder: JobFolder, follow: bool) -> Iterator[LogLine]:
        attempt = 1
        while True:
            over = not (follow and folder.alive())
            log = folder.log(attempt)
            if log.exists():
                source = f"attempt {attempt}"

                def ended(number: int = attempt) -> bool:
                    return folder.log(number + 1).exists() or not (follow and folder.alive())

                yield from (LogLine(source, text) for text in follow_file(log, ended, LOOK_SECONDS))
                attempt += 1
            elif over:
                return
            else:
                time.sleep(LOOK_SECONDS)

    def _end(self, folder: JobFolder, number: signal.Signals, seconds: float) -> None:
        """Send a signal to whoever works at a job, and wait until nobody does."""
        ends_at, told = time.monotonic() + seconds, set()
        while folder.alive() and time.monotonic() < ends_at:
            if (group := folder.group()) is not None:
                # The supervisor passes SIGTERM on: torchrun would leave at a second one, and not
                # wait for its processes. Where there is no supervisor, all are told.
                all_of_them = number is signal.SIGKILL or not _runs(group)
                if all_of_them not in told:
                    told.add(all_of_them)
                    with suppress(ProcessLookupError):
                        (os.killpg if all_of_them else os.kill)(group, number)
            time.sleep(LOOK_SECONDS / 5)

    def _remove_old(self) -> None:
        now = datetime.now(UTC)
        for folder in self._folders():
            try:
                record, outcome = folder.record(), folder.outcome()
            except _DAMAGE:
                continue  # `status` and `list` tell of it
            if outcome is None:
                continue
            age = now - datetime.fromisoformat(outcome.finished_at)
            if age.total_seconds() > record.keep_seconds:
                folder.remove()


@contextmanager
def _undamaged(folder: JobFolder) -> Iterator[None]:
    """Say of a folder that cannot be read what to do with it."""
    try:
        yield
    except _DAMAGE as error:
        raise BackendError(
            f"{folder.path} is damaged ({error}); remove it: rancast job cancel {folder.path.name}"
        ) from error


def _runs(process: int) -> bool:
    """Whether there is such a process of ours, and one that can still do something."""
    try:
        os.kill(process, 0)
        stat = Path("/proc", str(process), "stat").read_text(encoding="utf-8")
    except (ProcessLookupError, PermissionError):
        return False
    except OSError:  # no such file system here
        return True
    # Where nobody takes note of its end, it stays as a zombie.
    return stat.rpartition(")")[2].split()[0] != "Z"


def _phase(alive: bool, outcome: Outcome | None, begun: bool) -> Phase:
    if outcome is not None:
        well = outcome.exit_status == 0 and not outcome.past_deadline
        return Phase.SUCCEEDED if well else Phase.FAILED
    if not alive:
        return Phase.FAILED
    return Phase.RUNNING if begun else Phase.PENDING


def _problem(
    record: Record,
    alive: bool,
    outcome: Outcome | None,
    words: str | None,
    progress: Progress | None,
) -> Problem | None:
    if outcome is None:
        if alive:
            return None
        if progress is not None and progress.checkpoint is not None:
            return Problem(
                Cause.LOST,
                "its supervisor was killed, so that nobody saw how it ended; by its log it has "
                f"written {progress.checkpoint}: look at that before you submit it again",
            )
        return Problem(
            Cause.LOST,
            "its processes are gone without an outcome: they were killed, or the machine went "
            "down; cancel it and submit it again, training goes on from its saved state",
        )
    if outcome.error is not None:
        return Problem(Cause.CONFIGURATION, f"it could not be started: {outcome.error}")
    if outcome.past_deadline:
        said = f"; its last words: {words}" if words else ""
        return Problem(
            Cause.DEADLINE,
            f"it was stopped after {record.deadline_seconds:g} s; give it more (--deadline), "
            f"training goes on from its saved state{said}",
        )
    if outcome.exit_status == 0:
        return None
    return exit_problem(outcome.exit_status or 0, words)
