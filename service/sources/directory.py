"""Watches a directory into which a network writes PM files or tables.

The directory is looked at again and again rather than subscribed to: it may be a network mount or a
volume of Kubernetes, where change events do not arrive. A file is read once it has settled: it is
older than a moment, or it has kept its size and time of change between two looks. Files are read in
the order of their names, which for PM files is the order of time, and left where they are.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from kpi.catalogue import Catalogue
from kpi.errors import JournalError, UnreadableFileError
from kpi.readers import ReadOptions, read
from service.clock import Clock
from service.ingestion import Ingestion
from service.logs import log_event, log_failure
from service.metrics import Metrics
from service.sources.ledger import FileStamp, Ledger
from service.sources.selection import KpiSelection

_LOGGER = logging.getLogger(__name__)

_UNFINISHED = (".tmp", ".partial")
_SETTLED_MS = 2_000
_PROGRESS_S = 5.0


@dataclass(frozen=True, slots=True)
class PollResult:
    """What one look at the directory brought.

    Attributes:
        files: Files read.
        failed: Files that could not be read.
        samples: Observations in the files that were read.
        unsettled: Files that may still be written.
    """

    files: int = 0
    failed: int = 0
    samples: int = 0
    unsettled: int = 0


class DirectorySource:
    """Reads what appears in a directory into the store, on a thread of its own.

    Args:
        directory: Watched with everything below it; hidden and unfinished files are passed over.
        ingestion: Takes the observations.
        ledger: Remembers what was read; closed at the end.
        catalogue: Resolves names of KPIs.
        metrics: Told of files.
        clock: Tells how old a file is.
        poll_seconds: Time between two looks.
        time_zone: Zone of stamps without offset.
        selection: Which KPIs are taken; all by default.
        own: Files of the service itself, as absolute paths; passed over where they lie in the
            directory. Reading them would fail, change them, and let go of SQLite's locks.
    """

    def __init__(
        self,
        directory: Path,
        *,
        ingestion: Ingestion,
        ledger: Ledger,
        catalogue: Catalogue,
        metrics: Metrics,
        clock: Clock,
        poll_seconds: float,
        time_zone: str,
        selection: KpiSelection | None = None,
        own: Collection[Path] = (),
    ) -> None:
        self._directory = directory
        self._ingestion = ingestion
        self._ledger = ledger
        self._catalogue = catalogue
        self._metrics = metrics
        self._clock = clock
        self._poll_seconds = poll_seconds
        self._options = ReadOptions(time_zone=time_zone)
        self._selection = selection or KpiSelection(catalogue)
        self._own = {os.path.realpath(path) for path in own}
        self._seen: dict[str, FileStamp] = {}
        self._closed: set[str] = set()
        self._stopping = threading.Event()
        self._stopped = asyncio.Event()
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ingest")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to watch, on the running event loop."""
        log_event(_LOGGER, logging.INFO, "watching", directory=self._directory)
        self._task = asyncio.create_task(self._run(), name="directory-source")

    async def stop(self) -> None:
        """End after the file that is being read, and close the ledger."""
        self._stopping.set()
        self._stopped.set()
        if self._task is not None:
            await self._task
        self._executor.shutdown(wait=True)
        self._ledger.close()

    def poll(self) -> PollResult:
        """Look once, and read every settled file that was not read before; blocks."""
        closed: dict[str, OSError] = {}
        root = os.path.realpath(self._directory)
        present = {
            name: stamp
            for name, stamp in _files(self._directory, closed)
            if os.path.join(root, name) not in self._own
        }
        self._report_closed(closed)
        if "" in closed:
            return PollResult()
        self._ledger.keep_only(present.keys())
        waiting = [
            (name, stamp)
            for name, stamp in sorted(present.items())
            if not self._ledger.holds(name, stamp)
        ]
        settled = [(name, stamp) for name, stamp in waiting if self._is_settled(name, stamp)]
        self._seen = dict(waiting)
        return self._read_all(settled, unsettled=len(waiting) - len(settled))

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._stopping.is_set():
            try:
                await loop.run_in_executor(self._executor, self.poll)
            except Exception as error:
                # One bad look must not end the watch; the next one starts from the ledger.
                log_failure(_LOGGER, "poll_failed", error, directory=self._directory)
            try:
                await asyncio.wait_for(self._stopped.wait(), self._poll_seconds)
            except TimeoutError:
                continue

    def _is_settled(self, name: str, stamp: FileStamp) -> bool:
        age_ms = self._clock.now_ms() - stamp.mtime_ns // 1_000_000
        return age_ms > _SETTLED_MS or self._seen.get(name) == stamp

    def _read_all(self, settled: list[tuple[str, FileStamp]], *, unsettled: int) -> PollResult:
        files = failed = samples = 0
        told_s = self._clock.monotonic_s()
        for position, (name, stamp) in enumerate(settled):
            if self._stopping.is_set():
                break
            try:
                samples += self._read(name)
            except JournalError as error:
                # Not the file's fault: nothing is recorded, and the next look tries it again.
                log_event(_LOGGER, logging.ERROR, "journal_failed", file=name, reason=error)
                break
            except UnreadableFileError as error:
                failed += 1
                self._reject(name, stamp, error.reason)
            except Exception as error:
                failed += 1
                log_failure(_LOGGER, "reader_failed", error, file=name)
                self._reject(name, stamp, f"{type(error).__name__}: {error}")
            else:
                files += 1
                self._ledger.record(name, stamp)
                self._metrics.count_file(readable=True)
            if self._clock.monotonic_s() - told_s >= _PROGRESS_S:
                told_s = self._clock.monotonic_s()
                self._tell(files, failed, samples, backlog=len(settled) - position - 1)
        if files or failed:
            self._tell(files, failed, samples, backlog=len(settled) - files - failed)
        return PollResult(files, failed, samples, unsettled)

    def _read(self, name: str) -> int:
        samples = 0
        rejected: Counter[str] = Counter()
        for batch in read(self._directory / name, self._options, self._catalogue):
            taken = self._selection.of(batch)
            result = self._ingestion.merge(taken)
            samples += len(taken)
            for rejection in result.rejected:
                rejected[rejection.reason] += rejection.count
        if rejected:
            # One line a file: the commonest reason tells most, and there may be thousands.
            reason, _ = rejected.most_common(1)[0]
            log_event(
                _LOGGER,
                logging.WARNING,
                "observations_rejected",
                file=name,
                samples=rejected.total(),
                reasons=len(rejected),
                commonest=reason,
            )
        return samples

    def _reject(self, name: str, stamp: FileStamp, reason: str) -> None:
        self._ledger.record(name, stamp, reason)
        self._metrics.count_file(readable=False)
        log_event(_LOGGER, logging.ERROR, "file_failed", file=name, reason=reason)

    def _tell(self, files: int, failed: int, samples: int, *, backlog: int) -> None:
        log_event(
            _LOGGER,
            logging.INFO,
            "ingested",
            files=files,
            failed=failed,
            samples=samples,
            backlog=backlog,
        )

    def _report_closed(self, closed: Mapping[str, OSError]) -> None:
        """Name each directory that cannot be listed, once until it can be again."""
        for name, error in closed.items():
            if name not in self._closed:
                log_event(
                    _LOGGER,
                    logging.ERROR,
                    "directory_missing",
                    directory=self._directory / name,
                    reason=error.strerror,
                )
        self._closed = set(closed)


def _files(
    directory: Path, closed: dict[str, OSError], below: str = ""
) -> Iterator[tuple[str, FileStamp]]:
    """Every finished file under `directory`, by its path relative to the watched one.

    Directories that cannot be listed are put into `closed`, and the others are still looked at.
    """
    try:
        with os.scandir(directory) as listing:
            entries = list(listing)
    except OSError as error:
        closed[below] = error
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.name.lower().endswith(_UNFINISHED):
            continue
        name = below + entry.name
        try:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(Path(entry.path), closed, name + "/")
            elif entry.is_file():
                status = entry.stat()
                yield name, FileStamp(status.st_size, status.st_mtime_ns)
        except OSError:
            # Moved away between the listing and the look, or not ours to look at.
            continue
