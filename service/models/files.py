"""Checkpoint files as they lie: where, and whether they changed.

Looked at, not watched: in a mounted volume a file changes by a link that turns to another folder,
which notifications of the file itself do not tell, and network file systems tell nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from service.access.reloads import fingerprint
from service.loading import DIGEST_SUFFIX

SUFFIX = ".safetensors"
_MOST_FILES = 1_000

Look: TypeAlias = Mapping[Path, object]


def look_at(directory: Path | None, base: Path | None) -> Look:
    """What there is: each file, with what differs once it or its stated digest has changed.

    Args:
        directory: All checkpoints in it and below, but for hidden folders and files; a mounted
            volume keeps its own in those.
        base: One more file.

    Raises:
        OSError: The directory cannot be read, or holds unreasonably many files.
    """
    files = {} if directory is None else {path: _state(path) for path in _checkpoints(directory)}
    if base is not None and not any(same(path, base) for path in files):
        files[base] = _state(base)
    return {path: state for path, state in files.items() if state is not None}


def _checkpoints(directory: Path) -> list[Path]:
    def refuse(error: OSError) -> None:
        raise error

    found: list[Path] = []
    for folder, folders, names in os.walk(directory, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [
            Path(folder, name)
            for name in sorted(names)
            if name.endswith(SUFFIX) and not name.startswith(".")
        ]
        if len(found) > _MOST_FILES:
            raise OSError(f"expected at most {_MOST_FILES} checkpoints in {directory}, found more")
    return found


def _state(path: Path) -> object | None:
    """What changes with the file; None where there is none."""
    state = fingerprint(path)
    if isinstance(state, int):  # the number of an error
        return None
    return state, fingerprint(path.with_name(f"{path.name}{DIGEST_SUFFIX}"))


def same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file."""
    try:
        return one.samefile(other)
    except OSError:
        return False
