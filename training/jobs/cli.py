"""The terminal side of training jobs: a bar from what the job says, tables, exit statuses."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar
from rich.table import Table

from training.jobs.backend import POLL_SECONDS, LogLine, TrainingBackend, wait_for
from training.jobs.errors import JobError, JobNotFoundError
from training.jobs.progress import Progress, parse_event
from training.jobs.spec import JobSpec
from training.jobs.status import JobStatus, Phase

LAST_LINES_SECONDS = 10.0
"""How long the last lines of a job that has ended are waited for, where they are slow to come."""

DONE, FAILED = 0, 1
"""Exit statuses: of a job that has not failed, and of one that has."""


def submit_and_show(
    backend: TrainingBackend, spec: JobSpec, console: Console, *, follow: bool
) -> int:
    """Submit a job, say so, and where asked stay with it until it ends.

    Returns:
        The exit status.
    """
    submission = backend.submit(spec)
    how = "submitted" if submission.fresh else "was submitted before"
    _say(console, f"{spec.run_id} {how} ({backend.name})")
    if follow:
        return follow_job(backend, spec.run_id, console)
    if not submission.fresh:
        show_status(submission.status, console)
    _say(console, f"how it goes: rancast job status {spec.run_id} --backend {backend.name}")
    return FAILED if submission.status.phase is Phase.FAILED else DONE


def follow_job(
    backend: TrainingBackend,
    run_id: str,
    console: Console,
    *,
    poll_seconds: float = POLL_SECONDS,
) -> int:
    """Show a job's lines and progress until it has ended; then say how it ended.

    Its logs move the bar; only its status says that it has ended. Ctrl-C leaves the job alone.

    Returns:
        The exit status.
    """
    problem = None
    with _shown_lines(console) as show, _read_aside(backend, run_id, show) as all_read:
        for status in wait_for(
            backend, run_id, lambda status: status.finished, poll_seconds=poll_seconds
        ):
            if status.problem and status.problem != problem and not status.finished:
                problem = status.problem
                _say(console, f"{status.phase}: {problem}", style="yellow")
        all_read.wait(LAST_LINES_SECONDS)
    show_status(status, console)
    return FAILED if status.phase is Phase.FAILED else DONE


def show_status(status: JobStatus, console: Console) -> None:
    """How a job goes, one fact a line."""
    _say(console, f"{status.run_id}: {status.phase}", style=_style(status.phase))
    if status.problem is not None:
        may_pass = "" if status.finished or status.problem.lasting else " (this may pass)"
        _say(console, f"  {status.problem}{may_pass}")
    if status.failed_attempts:
        _say(console, f"  attempts that failed: {status.failed_attempts}")
    if status.progress is not None and (told := _told(status.progress)):
        _say(console, f"  {told}")
    if status.started_at is not None:
        end = status.finished_at or datetime.now(UTC)
        # The server's clock may be ahead of this one.
        seconds = max(0.0, (end - status.started_at).total_seconds())
        took = timedelta(seconds=round(seconds))
        _say(console, f"  {'took' if status.finished else 'for'} {took}")


def show_list(jobs: Sequence[JobStatus], console: Console) -> None:
    """All jobs as a table."""
    if not jobs:
        _say(console, "no jobs")
        return
    table = Table("run id", "phase", "submitted", "problem", box=None, pad_edge=False)
    for job in jobs:
        stamp = job.created_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        table.add_row(job.run_id, job.phase, stamp, str(job.problem.cause) if job.problem else "-")
    console.print(table, markup=False, highlight=False)


def print_logs(
    backend: TrainingBackend, run_id: str, write: Callable[[str], object], *, follow: bool
) -> None:
    """Write a job's lines as they are; where there are several sources each says its own."""
    with backend.logs(run_id, follow=follow) as lines:
        for text in _named(lines):
            write(f"{text}\n")


def cancel_and_wait(
    backend: TrainingBackend,
    run_id: str,
    console: Console,
    *,
    wait: bool,
    poll_seconds: float = POLL_SECONDS,
) -> None:
    """Cancel a job, and wait until nothing of it is left."""
    backend.cancel(run_id)
    if wait:
        try:
            for _ in wait_for(backend, run_id, lambda _: False, poll_seconds=poll_seconds):
                pass
        except JobNotFoundError:
            pass
    _say(console, f"{run_id} {'is gone' if wait else 'is being removed'}")


def _named(lines: Iterable[LogLine]) -> Iterator[str]:
    """Lines with a heading wherever another source goes on."""
    source = None
    for line in lines:
        if line.source != source:
            source = line.source
            yield f"==> {source} <=="
        yield line.text


@contextmanager
def _read_aside(
    backend: TrainingBackend, run_id: str, show: Callable[[LogLine], None]
) -> Iterator[threading.Event]:
    """Read a job's lines in a thread; the event is set once they are all read, or lost."""
    read = threading.Event()
    with backend.logs(run_id, follow=True) as lines:

        def run() -> None:
            try:
                for line in lines:
                    if left.is_set():
                        return
                    show(line)
            except JobNotFoundError:
                pass  # the status tells what there is to tell
            except JobError as error:
                show(LogLine(run_id, f"rancast: {error}"))
            finally:
                read.set()

        left = threading.Event()
        threading.Thread(target=run, name=f"lines of {run_id}", daemon=True).start()
        try:
            yield read
        finally:
            left.set()


@contextmanager
def _shown_lines(console: Console) -> Iterator[Callable[[LogLine], None]]:
    """Text as text; events as a bar on a terminal, else as a line each."""
    if not console.is_terminal:
        yield lambda line: _say(console, _as_line(line.text))
        return
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]} validation {task.fields[validation]}"),
        TimeElapsedColumn(),
    )
    with ProgressBar(*columns, console=console) as bar:
        task = bar.add_task("training", total=None, loss="-", validation="-")
        said = Progress()

        def show(line: LogLine) -> None:
            nonlocal said
            event = parse_event(line.text)
            if event is None:
                _say(console, line.text)
                return
            before, said = said, said.after(event)
            for news, old in ((said.warning, before.warning), (said.trouble, before.trouble)):
                if news and news != old:
                    _say(console, news, style="yellow")
            bar.update(
                task,
                completed=said.done or 0,
                total=said.of,
                loss=_figure(said.loss),
                validation=_figure(said.validation),
            )

        yield show


def _as_line(text: str) -> str:
    event = parse_event(text)
    if event is None:
        return text
    return _told(Progress().after(event)) or text


def _told(progress: Progress) -> str:
    of = "" if progress.of is None else f" of {progress.of}"
    parts = [
        "" if progress.done is None else f"{progress.unit} {progress.done}{of}",
        "" if progress.loss is None else f"loss {_figure(progress.loss)}",
        "" if progress.validation is None else f"validation {_figure(progress.validation)}",
        "" if progress.checkpoint is None else f"checkpoint written to {progress.checkpoint}",
        progress.warning or "",
        progress.trouble or "",
        progress.error or "",
    ]
    return ", ".join(part for part in parts if part)


def _figure(loss: float | None) -> str:
    return "-" if loss is None else f"{loss:.4f}"


def _style(phase: Phase) -> str | None:
    return {Phase.SUCCEEDED: "green", Phase.FAILED: "red"}.get(phase)


def _say(console: Console, text: str, style: str | None = None) -> None:
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
