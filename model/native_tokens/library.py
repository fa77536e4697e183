"""Finding, building and loading the tokeniser's shared library.

It is C++ without a header of torch's, so it depends on neither its version nor its ABI, and runs on
every processor that its compiler makes code for. It is looked for beside this file, where a package
may bring it, and then in the user's cache.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import platform
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from model.attention.native.library import compiler
from model.code_cache import ISA_VARIABLE, cache_folder, is_ours
from model.errors import ArtifactError

SOURCES = Path(__file__).parent / "csrc"
BESIDE = Path(__file__).parent / "lib"
FLAGS = ("-std=c++17", "-O3", "-fPIC", "-shared", "-fno-math-errno")
_SHOWN_CHARACTERS = 2_000

_log = logging.getLogger("rancast.tokens")


@dataclass(frozen=True)
class Library:
    """What became of the library on this machine.

    Attributes:
        function: `rancast_tokens`, or None where tokens are made by torch.
        reason: Why, in words for a person.
        plan_bytes: Size of its plan, which has to be ours.
    """

    function: Callable[..., int] | None
    reason: str
    plan_bytes: int = 0


@cache
def load() -> Library:
    """The library, loaded the first time; where that is not possible, why, logged once."""
    library = _load()
    if library.function is None:
        _log.info("tokens are made by torch: %s", library.reason)
    return library


def _load() -> Library:
    if os.environ.get(ISA_VARIABLE) == "none":
        return Library(None, f"{ISA_VARIABLE} is none")
    try:
        path = find()
        if path is None:
            return Library(None, "the tokeniser is not built; `rancast doctor --build` builds it")
        if not is_ours(path):
            return Library(None, f"{path} may be written by others, so it is not loaded")
        library = ctypes.CDLL(str(path))
        function, size = library.rancast_tokens, library.rancast_plan_bytes
    except (OSError, AttributeError, ArtifactError) as error:
        return Library(None, f"the tokeniser cannot be loaded: {error}")
    function.restype, size.restype = ctypes.c_int, ctypes.c_int64
    return Library(function, f"native, from {path}", size())


def find() -> Path | None:
    """The library that fits these sources, if it has been built."""
    if (beside := BESIDE / library_name()).is_file():
        return beside
    cached = cache_folder() / library_name()
    return cached if cached.is_file() else None


def library_name() -> str:
    """File name of the library, by what it is made from."""
    digest = hashlib.sha256()
    for path in sorted(SOURCES.iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    digest.update(repr((FLAGS, platform.machine(), platform.libc_ver())).encode())
    return f"tokens-{digest.hexdigest()[:16]}.so"


def build(folder: Path | None = None) -> Path:
    """Compile the library, unless it is there already; it takes seconds.

    Args:
        folder: Where to, by default the cache.

    Returns:
        Its path. It appears there in one step.

    Raises:
        ArtifactError: There is no compiler, it fails, or the folder cannot be written.
    """
    try:
        path = (folder or cache_folder()) / library_name()
        if path.is_file():
            return path
        if (tool := compiler()) is None:
            raise ArtifactError("expected a C++ compiler (CXX, or g++), found none")
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            made = Path(scratch) / path.name
            command = [*tool, *FLAGS, str(SOURCES / "tokens.cpp"), "-o", str(made)]
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False
            )
            if done.returncode:
                words = (done.stdout + done.stderr)[-_SHOWN_CHARACTERS:]
                raise ArtifactError(f"expected `{' '.join(command)}` to work, it said: {words}")
            made.chmod(0o755)
            os.replace(made, path)
    except OSError as error:
        raise ArtifactError(f"expected to build the tokeniser, could not: {error}") from error
    return path
