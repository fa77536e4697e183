"""The process that stands by a local job: attempts, deadline, outcome.

It leads a session of its own, so it stays when the shell that submitted goes. Started as
`python -m training.jobs.local.supervisor FOLDER LOCK`, LOCK being the inherited descriptor of the
job's lock.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from training.exit_status import BAD_INPUT
from training.jobs.local.folder import JobFolder, Outcome

GRACE_SECONDS = 40.0
"""Between asking a process to end and ending it: torchrun gives its own processes 30."""


class _Stopped(Exception):
    """Somebody asked the supervisor to end."""


def supervise(folder: JobFolder, lock: int) -> None:
    """Run a job to its end and write how it ended.

    Args:
        folder: Of the job.
        lock: Descriptor of its lock, which every attempt inherits.
    """
    record = folder.record()
    ends_at = time.monotonic() + record.deadline_seconds
    environment = {**os.environ, **record.environment}
    failed, status, past, error = 0, None, False, None
    for attempt in range(1, record.retries + 2):
        with folder.log(attempt).open("wb") as log:
            try:
                process = subprocess.Popen(
                    record.command,
                    cwd=record.directory,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    pass_fds=(lock,),
                )
            except OSError as cannot:
                error = str(cannot)
                break
        try:
            status = process.wait(max(0.0, ends_at - time.monotonic()))
        except subprocess.TimeoutExpired:
            past, status = True, _end(process)
        except _Stopped:
            status = _end(process)
            failed += 1
            break
        failed += status != 0 or past
        if status in (0, BAD_INPUT) or past:
            break
    now = datetime.now(UTC).isoformat()
    folder.finish(Outcome(status, failed, past, now, error))


def _end(process: subprocess.Popen[bytes]) -> int:
    process.terminate()
    try:
        return process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise _Stopped


def main() -> None:
    """Take the folder and the lock from the command line, and the signals from whoever cancels."""
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    folder, lock = sys.argv[1:]
    supervise(JobFolder(Path(folder)), int(lock))


if __name__ == "__main__":
    main()
