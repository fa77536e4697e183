"""Folders and files, written whole or not at all, and with words of what stands in the way."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, where there is none.

    Raises:
        NotADirectoryError: It, or one above it, is a file.
        OSError: It cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        there = next(each for each in (path, *path.parents) if each.exists())
        raise NotADirectoryError(errno.ENOTDIR, f"expected a folder, {there} is a file") from error


def replace_file(path: Path, content: bytes) -> None:
    """Put a file where it belongs in one step: a reader sees the old one or the new one, whole.

    Raises:
        OSError: It cannot be written; what was there stays, and nothing is left beside it.
    """
    make_folder(path.parent)
    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.write_bytes(content)
        # A power cut must not leave the new name with nothing in it.
        _to_disk(partial)
        os.replace(partial, path)
        with suppress(OSError):  # not every file system takes it, and the file is there
            _to_disk(path.parent)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
