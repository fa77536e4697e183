"""Where machine code that was made for this machine is kept, and what decides about it.

The variables are no settings of the service: they hold for every command and for the library.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from model.errors import ArtifactError

CACHE_VARIABLE = "RANCAST_CACHE_DIR"
"""Folder of machine code."""

ISA_VARIABLE = "RANCAST_CPU_ISA"
"""Names an instruction set for the attention kernel in place of the best, or none for no kernel."""

FLAGS_VARIABLE = "RANCAST_KERNEL_FLAGS"
"""More flags for the kernel's compiler, such as those of a sanitiser; its name depends on them."""


def cache_folder() -> Path:
    """Folder of the code: `RANCAST_CACHE_DIR`, or `rancast` in the user's own cache.

    Raises:
        ArtifactError: None is named and the user has no home.
    """
    if configured := os.environ.get(CACHE_VARIABLE):
        return Path(configured)
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "rancast"
    try:
        return Path.home() / ".cache" / "rancast"
    except RuntimeError as error:
        raise ArtifactError(
            f"expected a home or a folder named by {CACHE_VARIABLE} for compiled code, got neither"
        ) from error


def is_ours(path: Path) -> bool:
    """Whether nobody but this user and root may change a file that is about to be run."""
    owners = {0, os.getuid()}
    states = (path.stat(), path.parent.stat())
    return all(state.st_uid in owners and not state.st_mode & 0o022 for state in states)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock that one process of this machine has at a time; `path` is left behind, empty.

    Raises:
        OSError: The file cannot be made.
    """
    handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
