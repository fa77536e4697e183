"""The journal: what the store has acknowledged, in one SQLite file.

Each merged batch is one row: an Arrow stream, compressed, with a checksum. The database is in WAL
mode with `synchronous=FULL`, so an acknowledged batch survives a killed process and a power cut.
It is locked for one process.

The file stays bounded in two ways, both paid for by the appends that cause them. Small batches are
merged into larger ones by the logarithmic method (Bentley and Saxe, Decomposable searching problems
I, J. Algorithms 1980): from the newest backwards, a batch joins when it is no larger than what has
been gathered. And once the journal holds more than twice as many samples as the store has room for,
each append pays for rewriting twice its own length of old batches, with only those samples that a
replay still needs. Order is kept, so that the latest arrival still wins.
"""

from __future__ import annotations

import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kpi.codec import DamagedBatchError, decode, encode
from kpi.errors import JournalError
from kpi.observation import ObservationBatch

APPLICATION_ID = 0x52_4E_4B_4A
FORMAT_VERSION = 1
SMALL_BATCHES = 256
GROUP_SAMPLES = 1 << 20
CLEANING_SAMPLES = 1 << 16
PAGE_BYTES = 16_384
KEPT_WAL_BYTES = 64 << 20

Needed = Callable[[ObservationBatch], NDArray[np.bool_]]


class Journal:
    """Durable batches in order of arrival.

    Args:
        path: The SQLite file; made where it is missing. Beside it lies `<path>-wal`.
        small_batches: Batches that may gather before they are merged.
        group_samples: Most samples that are read, merged and written as one row.

    Raises:
        JournalError: The file cannot be opened, is no journal, is of a newer format, or is in use
            by another process.
    """

    def __init__(
        self,
        path: Path,
        *,
        small_batches: int = SMALL_BATCHES,
        group_samples: int = GROUP_SAMPLES,
    ) -> None:
        self.path = path
        self._small_batches = small_batches
        self._group_samples = group_samples
        self._lock = threading.RLock()
        self._large_samples = max(2, group_samples // 16)  # large enough to be left alone
        self._unmerged_samples = 0
        self._merged_to = 0
        self._debt = 0
        self._cleaned_to = 0
        try:
            self._database = sqlite3.connect(
                path, timeout=0, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise self._failure("be opened", error) from error
        try:
            self._prepare()
            self._samples, self._unmerged = self._database.execute(
                "SELECT coalesce(sum(samples), 0), coalesce(sum(samples < ?), 0) FROM batch",
                (self._large_samples,),
            ).fetchone()
        except sqlite3.Error as error:
            self._database.close()
            raise self._failure("be opened", error) from error
        except JournalError:
            self._database.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def samples(self) -> int:
        """Samples in the file, superseded ones included."""
        return int(self._samples)

    @property
    def batches(self) -> int:
        """Rows in the file."""
        return int(self._database.execute("SELECT count(*) FROM batch").fetchone()[0])

    @property
    def bytes(self) -> int:
        """Size of the file's pages in use, without the write-ahead log."""
        return int(
            self._database.execute(
                "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, "
                "pragma_freelist_count, pragma_page_size"
            ).fetchone()[0]
        )

    def append(self, batch: ObservationBatch) -> None:
        """Write a batch; it is on disk when this returns.

        Raises:
            JournalError: It could not be written, for example because the disk is full. Nothing of
                it is in the journal, and later appends work once the cause is gone.
        """
        parts = [
            batch.take(np.arange(start, min(start + self._group_samples, len(batch))))
            if len(batch) > self._group_samples
            else batch
            for start in range(0, len(batch), self._group_samples)
        ]
        with self._lock, self._transaction():
            for part in parts:
                self._insert(None, part)
        self._samples += len(batch)
        small = [len(part) for part in parts if len(part) < self._large_samples]
        self._unmerged += len(small)
        self._unmerged_samples += sum(small)
        self._debt += 2 * len(batch)

    def replay(self) -> Iterator[ObservationBatch]:
        """All batches in order of arrival.

        Raises:
            JournalError: A batch is damaged, or the file cannot be read.
        """
        last = 0
        while True:
            with self._lock:
                group = self._read(last, 1)
            if not group:
                return
            last, batch = group[0]
            yield batch

    def maintain(self, capacity: int, needed: Needed) -> None:
        """Do the work that the appends since the last call owe; usually none.

        Args:
            capacity: Samples that the store has room for.
            needed: Which samples of a batch a replay still needs, bool (n,).

        Raises:
            JournalError: The file could not be rewritten, and is as before.
        """
        with self._lock:
            if (
                self._unmerged >= self._small_batches
                or self._unmerged_samples >= self._group_samples
            ):
                self._merge_small(needed)
                self._unmerged = self._unmerged_samples = 0
            if self._samples <= 2 * capacity:
                self._debt = 0
            elif self._debt >= min(self._samples, CLEANING_SAMPLES):
                self.compact(needed, self._debt)
                self._debt = 0

    def compact(self, needed: Needed, samples: int | None = None) -> None:
        """Rewrite old batches with only the samples that are needed.

        A call goes on where the last one stopped and begins anew at the end of the journal, so that
        in time all of it is visited.

        Args:
            needed: Which samples of a batch a replay still needs, bool (n,).
            samples: About how many samples to visit; all by default.

        Raises:
            JournalError: The file could not be rewritten; what was not is as before.
        """
        with self._lock:
            left = self._samples if samples is None else min(samples, self._samples)
            if samples is None:
                self._cleaned_to = 0
            while left > 0:
                sizes = self._sizes("id > ? ORDER BY id", self._cleaned_to)
                group = self._first_group(sizes, max(left, CLEANING_SAMPLES))
                if not group:
                    if not self._cleaned_to:
                        return
                    self._cleaned_to = 0
                    continue
                left -= sum(size for _, size in group)
                self._rewrite([number for number, _ in group], needed)
                self._cleaned_to = group[-1][0]

    def close(self) -> None:
        """Fold the write-ahead log into the file and unlock it."""
        with self._lock:
            self._database.close()

    def _prepare(self) -> None:
        """Lock the file, check that it is a journal, and make it one where it is empty."""
        run = self._database.execute
        run("PRAGMA locking_mode=EXCLUSIVE")
        (identity,) = run("PRAGMA application_id").fetchone()
        (version,) = run("PRAGMA user_version").fetchone()
        (tables,) = run("SELECT count(*) FROM sqlite_master").fetchone()
        if identity != APPLICATION_ID and (identity or version or tables):
            raise JournalError(
                f"{self.path} is an SQLite file of another application; give the journal a path "
                "of its own"
            )
        if version > FORMAT_VERSION:
            raise JournalError(
                f"{self.path} has journal format {version}, this version reads up to "
                f"{FORMAT_VERSION}; upgrade, or give the journal a new path"
            )
        run(f"PRAGMA page_size={PAGE_BYTES}")
        (mode,) = run("PRAGMA journal_mode=WAL").fetchone()
        if mode != "wal":
            raise JournalError(
                f"{self.path} cannot have a write-ahead log (its mode is {mode!r}); give the "
                "journal a path on a local disk"
            )
        run("PRAGMA synchronous=FULL")
        run(f"PRAGMA journal_size_limit={KEPT_WAL_BYTES}")
        with self._transaction():
            run(f"PRAGMA application_id={APPLICATION_ID}")
            run(f"PRAGMA user_version={FORMAT_VERSION}")
            run(
                "CREATE TABLE IF NOT EXISTS batch (id INTEGER PRIMARY KEY, samples INTEGER "
                "NOT NULL, checksum INTEGER NOT NULL, payload BLOB NOT NULL)"
            )

    def _merge_small(self, needed: Needed) -> None:
        """Merge the small batches since the last time, and those before by the logarithmic rule."""
        groups: list[list[int]] = [[]]
        gathered = 0
        newest = 0
        sizes = self._sizes("1 ORDER BY id DESC")
        for number, size in sizes:
            newest = max(newest, number)
            if number <= self._merged_to and size > gathered:
                break
            is_large = size >= self._large_samples
            if is_large or gathered + size > self._group_samples:
                groups.append([])
                gathered = 0
            if not is_large:
                groups[-1].append(number)
                gathered += size
        sizes.close()
        for group in groups:
            if len(group) > 1:
                self._rewrite(group[::-1], needed)
        self._merged_to = newest

    def _first_group(self, sizes: Iterator[tuple[int, int]], samples: int) -> list[tuple[int, int]]:
        """The first batches with about so many samples, at least one, at most a group's worth."""
        group: list[tuple[int, int]] = []
        gathered = 0
        for number, size in sizes:
            if group and (gathered >= samples or gathered + size > self._group_samples):
                break
            group.append((number, size))
            gathered += size
        return group

    def _sizes(self, condition: str, *values: int) -> sqlite3.Cursor:
        try:
            return self._database.execute(
                f"SELECT id, samples FROM batch WHERE {condition}", values
            )
        except sqlite3.Error as error:
            raise self._failure("be read", error) from error

    def _rewrite(self, numbers: Sequence[int], needed: Needed) -> None:
        """Replace neighbouring batches by one with what is needed of them, in one transaction."""
        batches = [batch for _, batch in self._read(numbers[0] - 1, len(numbers))]
        whole = ObservationBatch.concatenate(batches)
        left = whole.take(needed(whole))
        with self._transaction():
            self._database.execute(
                "DELETE FROM batch WHERE id BETWEEN ? AND ?", (numbers[0], numbers[-1])
            )
            if len(left):
                # The newest number, so that numbers never run backwards even at the end.
                self._insert(numbers[-1], left)
        self._samples += len(left) - len(whole)

    def _insert(self, number: int | None, batch: ObservationBatch) -> None:
        payload = encode(batch)
        self._database.execute(
            "INSERT INTO batch VALUES (?, ?, ?, ?)",
            (number, len(batch), zlib.crc32(payload), payload),
        )

    def _read(self, after: int, limit: int) -> list[tuple[int, ObservationBatch]]:
        try:
            rows = self._database.execute(
                "SELECT id, checksum, payload FROM batch WHERE id > ? ORDER BY id LIMIT ?",
                (after, limit),
            ).fetchall()
        except sqlite3.Error as error:
            raise self._failure("be read", error) from error
        batches = []
        for number, checksum, payload in rows:
            try:
                if zlib.crc32(payload) != checksum:
                    raise DamagedBatchError("its checksum does not match")
                batches.append((number, decode(payload)))
            except DamagedBatchError as error:
                raise JournalError(
                    f"batch {number} of {self.path} is damaged: {error}; restore the file from a "
                    "copy, or move it away to begin empty"
                ) from error
        return batches

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._database.execute("BEGIN IMMEDIATE")
            yield
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._failure("be written", error) from error
        finally:
            with suppress(sqlite3.Error):  # a rollback without a transaction does nothing
                self._database.rollback()

    def _failure(self, action: str, error: sqlite3.Error) -> JournalError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        remedy = {
            sqlite3.SQLITE_BUSY: "another process is using it; give each process its own journal",
            sqlite3.SQLITE_CANTOPEN: "check that the folder exists and may be written",
            sqlite3.SQLITE_READONLY: "check that the file and its folder may be written",
            sqlite3.SQLITE_FULL: "free some space; nothing acknowledged is lost",
            sqlite3.SQLITE_IOERR: "check the disk and its free space; nothing acknowledged is lost",
            sqlite3.SQLITE_NOTADB: "it is no journal; give the journal a path of its own",
            sqlite3.SQLITE_CORRUPT: "restore it from a copy, or move it away to begin empty",
        }.get(code, "see the SQLite error")
        return JournalError(f"journal {self.path} cannot {action}: {error}; {remedy}")
