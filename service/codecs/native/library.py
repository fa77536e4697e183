"""Finding, building and loading the reader of samples, a shared library of plain C++."""

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
FLAGS = ("-std=c++17", "-O3", "-fPIC", "-shared")

_log = logging.getLogger("rancast.samples")
_loading = threading.Lock()


@dataclass(frozen=True)
class Library:
    """What became of the library on this machine.

    Attributes:
        at_once: `rancast_cut` that keeps the interpreter to itself, which is quicker for a small
            body, or None where pydantic reads samples.
        aside: The same letting other threads run, for a large one.
        reason: Why, in words for a person.
        most_members: `rancast_most_members`, which lets other threads run.
    """

    at_once: Callable[..., int] | None
    aside: Callable[..., int] | None
    reason: str
    most_members: Callable[..., int] | None = None


@cache
def load() -> Library:
    """The library, loaded the first time; where that is not possible, why, logged once."""
    with _loading:  # the outer cache lets two first calls in
        return _load_once()


@cache
def _load_once() -> Library:
    found = _load()
    if found.aside is None:
        _log.info("samples are read by pydantic: %s", found.reason)
    return found


def _load() -> Library:
    if os.environ.get(ISA_VARIABLE) == "none":
        return Library(None, None, f"{ISA_VARIABLE} is none")
    try:
        path = cutter_library().find()
        if path is None:
            return Library(
                None, None, "the reader is not built; `rancast doctor --build` builds it"
            )
        if not is_ours(path):
            return Library(None, None, f"{path} may be written by others, so it is not loaded")
        at_once = ctypes.PyDLL(str(path)).rancast_cut
        aside = ctypes.CDLL(str(path)).rancast_cut
        most_members = ctypes.CDLL(str(path)).rancast_most_members
    except (OSError, AttributeError, ArtifactError) as error:
        return Library(None, None, f"the reader cannot be loaded: {error}")
    for function in (at_once, aside):
        function.restype = ctypes.c_int64
        function.argtypes = [
            ctypes.c_char_p,
            ctypes.c_int64,
            ctypes.c_char_p,
            ctypes.c_void_p,
            ctypes.c_int64,
            ctypes.POINTER(ctypes.c_int64),
            ctypes.c_void_p,
            ctypes.c_int64,
            ctypes.c_void_p,
            ctypes.c_int64,
        ]
    most_members.restype = ctypes.c_int64
    most_members.argtypes = [ctypes.c_char_p, ctypes.c_int64]
    return Library(at_once, aside, f"native, from {path}", most_members)


def cutter_library() -> SharedLibrary:
    """The library for these sources."""
    made_with = (FLAGS, platform.machine(), platform.libc_ver())
    return SharedLibrary("samples", SOURCES, SOURCES.with_name("lib"), made_with, _compile)


def _compile(folder: Path) -> Path:
    made = folder / "samples.so"
    run_compiler([*compiler(), *FLAGS, str(SOURCES / "cut.cpp"), "-o", str(made)])
    return made
