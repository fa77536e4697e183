"""Where machine code that was made for this machine is kept, and what decides about it.

The variables are no settings of the service: they hold for every command and for the library.
"""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "RANCAST_CACHE_DIR"
ISA_VARIABLE = "RANCAST_CPU_ISA"
"""Names an instruction set for the attention kernel in place of the best, or none for no kernel."""

FLAGS_VARIABLE = "RANCAST_KERNEL_FLAGS"
"""More flags for the kernel's compiler, such as those of a sanitiser; its name depends on them."""


def cache_folder() -> Path:
    """Folder of the code: `RANCAST_CACHE_DIR`, or `rancast` in the user's own cache."""
    if configured := os.environ.get(CACHE_VARIABLE):
        return Path(configured)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "rancast"


def is_ours(path: Path) -> bool:
    """Whether nobody but this user and root may change a file that is about to be run."""
    owners = {0, os.getuid()}
    states = (path.stat(), path.parent.stat())
    return all(state.st_uid in owners and not state.st_mode & 0o022 for state in states)
