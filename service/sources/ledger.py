"""Which files of a watched directory were read, remembered as long as the journal remembers them.

A file is known by its path, size and time of change; a file that changed is read again. Losing the
ledger costs only time: merging the same observations twice changes nothing.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from service.logs import log_event

_LOGGER = logging.getLogger(__name__)

# What SQLite appends to the name of a database for its files.
_PARTS = ("", "-wal", "-shm", "-journal")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS file (
    path TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, failure TEXT
) WITHOUT ROWID
"""


@dataclass(frozen=True, slots=True)
class FileStamp:
    """What tells one state of a file from another."""

    size: int
    mtime_ns: int


class Ledger:
    """Files that were read, in memory and, where there is a journal, beside it.

    Args:
        path: SQLite file, None to remember only as long as the process lives.

    Raises:
        sqlite3.Error: The file can be neither used nor replaced.
    """

    def __init__(self, path: Path | None) -> None:
        self._database = None if path is None else _open(path)
        self._known: dict[str, FileStamp] = {}
        if self._database is not None:
            rows = self._database.execute("SELECT path, size, mtime_ns FROM file")
            self._known = {name: FileStamp(size, mtime_ns) for name, size, mtime_ns in rows}

    @staticmethod
    def beside(journal_path: Path | None, *, fresh: bool) -> Ledger:
        """The ledger that belongs to a journal.

        Args:
            journal_path: The journal, None where there is none.
            fresh: The journal is new, so what an older one held has to be read again.
        """
        if journal_path is None:
            return Ledger(None)
        path = ledger_path(journal_path)
        if fresh:
            _discard(path)
        return Ledger(path)

    def __len__(self) -> int:
        """Number of files remembered."""
        return len(self._known)

    def holds(self, name: str, stamp: FileStamp) -> bool:
        """Whether this state of the file was read."""
        return self._known.get(name) == stamp

    def record(self, name: str, stamp: FileStamp, failure: str | None = None) -> None:
        """Remember that this state of the file was read, or why it could not be."""
        self._known[name] = stamp
        if self._database is not None:
            with self._database:
                self._database.execute(
                    "INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?)",
                    (name, stamp.size, stamp.mtime_ns, failure),
                )

    def keep_only(self, names: Collection[str]) -> None:
        """Forget files that are not among `names`; bounds the ledger by the directory."""
        gone = [name for name in self._known if name not in names]
        for name in gone:
            del self._known[name]
        if gone and self._database is not None:
            with self._database:
                self._database.executemany(
                    "DELETE FROM file WHERE path = ?", [(name,) for name in gone]
                )

    def close(self) -> None:
        """Close the file."""
        if self._database is not None:
            self._database.close()


def ledger_path(journal_path: Path) -> Path:
    """Where the ledger of a journal lies."""
    return journal_path.with_name(f"{journal_path.stem}.files.sqlite")


def own_files(journal_path: Path | None) -> frozenset[Path]:
    """Every file that the journal and its ledger may consist of, as absolute paths."""
    if journal_path is None:
        return frozenset()
    return frozenset(
        path.with_name(path.name + suffix)
        for path in (journal_path.absolute(), ledger_path(journal_path).absolute())
        for suffix in _PARTS
    )


def _open(path: Path) -> sqlite3.Connection:
    try:
        return _connect(path)
    except sqlite3.DatabaseError as error:
        log_event(_LOGGER, logging.WARNING, "ledger_replaced", path=path, reason=error)
        _discard(path)
        return _connect(path)


def _connect(path: Path) -> sqlite3.Connection:
    # One thread at a time uses it, but not always the one that opened it.
    database = sqlite3.connect(path, check_same_thread=False)
    try:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=NORMAL")
        database.execute(_SCHEMA)
    except sqlite3.DatabaseError:
        database.close()
        raise
    return database


def _discard(path: Path) -> None:
    for suffix in _PARTS:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
