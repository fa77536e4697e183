"""Finding, building and loading the tokeniser's shared library.

It is C++ without a header of torch's, so it depends on neither its version nor its ABI, and runs on
every processor that its compiler makes code for.
"""

from __future__ import annotations

import ctypes
import logging
import os
import platform
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from model.code_cache import ISA_VARIABLE, is_ours
from model.errors import ArtifactError
from model.shared_library import SharedLibrary, compiler, run_compiler

SOURCES = Path(__file__).parent / "csrc"
FLAGS = ("-std=c++17", "-O3", "-fPIC", "-shared", "-fno-math-errno")

_log = logging.getLogger("rancast.tokens")
_loading = threading.Lock()


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
    with _loading:  # the outer cache lets two first calls in
        return _load_once()


@cache
def _load_once() -> Library:
    found = _load()
    if found.function is None:
        _log.info("tokens are made by torch: %s", found.reason)
    return found


def _load() -> Library:
    if os.environ.get(ISA_VARIABLE) == "none":
        return Library(None, f"{ISA_VARIABLE} is none")
    try:
        path = token_library().find()
        if path is None:
            return Library(None, "the tokeniser is not built; `rancast doctor --build` builds it")
        if not is_ours(path):
            return Library(None, f"{path} may be written by others, so it is not loaded")
        loaded = ctypes.CDLL(str(path))
        function, size = loaded.rancast_tokens, loaded.rancast_plan_bytes
    except (OSError, AttributeError, ArtifactError) as error:
        return Library(None, f"the tokeniser cannot be loaded: {error}")
    function.restype, size.restype = ctypes.c_int, ctypes.c_int64
    return Library(function, f"native, from {path}", size())


def token_library() -> SharedLibrary:
    """The library for these sources."""
    made_with = (FLAGS, platform.machine(), platform.libc_ver())
    return SharedLibrary("tokens", SOURCES, SOURCES.with_name("lib"), made_with, _compile)


def _compile(folder: Path) -> Path:
    made = folder / "tokens.so"
    run_compiler([*compiler(), *FLAGS, str(SOURCES / "tokens.cpp"), "-o", str(made)])
    return made
