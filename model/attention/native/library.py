"""Finding, building and loading the kernel's shared library.

The library is C++ on torch's stable ABI, compiled for several instruction sets at once, of which
one is chosen when it runs. It is looked for beside this file, where a package may bring it, and
then in the user's cache; its name says which sources, compiler flags and torch it was made from, so
that a stale one is never found.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch

from model.attention.native.gradient import register
from model.code_cache import FLAGS_VARIABLE, ISA_VARIABLE, cache_folder, is_ours
from model.errors import ArtifactError, AttentionError

SOURCES = Path(__file__).parent / "csrc"
BESIDE = Path(__file__).parent / "lib"
COMMON_FLAGS = (
    "-std=c++17",
    "-O3",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-math-errno",
    "-ffp-contract=fast",
    "-Wno-psabi",
    "-Wno-ignored-attributes",
)
AVX2_FLAGS = ("-mavx2", "-mfma", "-mf16c")
AVX512_FLAGS = (*AVX2_FLAGS, "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl")
BF16_FLAGS = (*AVX512_FLAGS, "-mavx512bf16")
KERNELS: Mapping[str, tuple[str, ...]] = {
    "avx2": AVX2_FLAGS,
    "avx512": AVX512_FLAGS,
    "avx512_bf16": BF16_FLAGS,
    "amx": (*BF16_FLAGS, "-mamx-tile", "-mamx-bf16", "-DRANCAST_AMX"),
}
STABLE_ABI = "-DTORCH_TARGET_VERSION=0x020a000000000000"

_log = logging.getLogger("rancast.attention")
_loading = threading.Lock()


@dataclass(frozen=True)
class Kernel:
    """What became of the kernel on this machine.

    Attributes:
        isa: Instruction set that runs, or None where the pure-torch path answers.
        reason: Why, in words for a person.
        path: The library, if there is one.
    """

    isa: str | None
    reason: str
    path: Path | None = None

    @property
    def usable(self) -> bool:
        """Whether attention can be answered by it."""
        return self.isa is not None


@cache
def load() -> Kernel:
    """The kernel, loaded the first time; where that is not possible, why, logged once."""
    with _loading:  # the outer cache lets two first calls in
        return _load_once()


@cache
def _load_once() -> Kernel:
    kernel = _load()
    if not kernel.usable:
        _log.info("attention runs in torch: %s", kernel.reason)
    return kernel


def _load() -> Kernel:
    if os.environ.get(ISA_VARIABLE) == "none":
        return Kernel(None, f"{ISA_VARIABLE} is none")
    if platform.machine() not in ("x86_64", "AMD64") or platform.system() != "Linux":
        return Kernel(None, f"no kernel for {platform.system()} on {platform.machine()}")
    try:
        path = find()
    except (OSError, ArtifactError) as error:
        return Kernel(None, f"the kernel cannot be looked for: {error}")
    if path is None:
        return Kernel(None, "the kernel is not built; `rancast doctor --build` builds it")
    if not is_ours(path):
        return Kernel(None, f"{path} may be written by others, so it is not loaded", path)
    try:
        torch.ops.load_library(str(path))  # type: ignore[no-untyped-call]
        register()
        isa = ctypes.CDLL(str(path)).rancast_attention_isa
    except (OSError, AttributeError, RuntimeError) as error:
        return Kernel(None, f"{path} cannot be loaded: {error}", path)
    isa.restype = ctypes.c_char_p
    chosen = isa().decode()
    if chosen == "none":
        wanted = os.environ.get(ISA_VARIABLE)
        lacking = f"{wanted}, which {ISA_VARIABLE} asks for" if wanted else "AVX2"
        return Kernel(None, f"this processor lacks {lacking}", path)
    return Kernel(chosen, f"{chosen} kernel from {path}", path)


def find() -> Path | None:
    """The library that fits these sources and this torch, if it has been built."""
    name = library_name()
    if (beside := BESIDE / name).is_file():
        return beside
    cached = cache_folder() / name
    return cached if cached.is_file() else None


def library_name() -> str:
    """File name of the library, by what it is made from."""
    digest = hashlib.sha256()
    for path in sorted([*SOURCES.glob("*.h"), *SOURCES.glob("*.cpp")]):
        digest.update(path.name.encode() + path.read_bytes())
    made_with = (_common_flags(), dict(KERNELS), torch.__version__, platform.libc_ver())
    digest.update(repr(made_with).encode())
    return f"attention-{digest.hexdigest()[:16]}.so"


def _common_flags() -> tuple[str, ...]:
    return (*COMMON_FLAGS, *os.environ.get(FLAGS_VARIABLE, "").split())


def compiler() -> list[str] | None:
    """The C++ compiler with its arguments: `CXX`, or g++."""
    words = shlex.split(os.environ.get("CXX") or "g++")
    return words if words and shutil.which(words[0]) else None


def build(folder: Path | None = None) -> Path:
    """Compile the library, unless it is there already.

    A compiler that does not know an instruction set leaves it out; without AVX2 there is no kernel.

    Args:
        folder: Where to, by default the cache.

    Returns:
        Its path. It appears there in one step, so that two builds at once do no harm.

    Raises:
        AttentionError: There is no compiler, or it fails, in its own last words, or the folder
            cannot be written.
    """
    try:
        path = (folder or cache_folder()) / library_name()
        if path.is_file():
            return path
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            built = _compile(Path(scratch))
            built.chmod(0o755)
            os.replace(built, path)
    except (OSError, ArtifactError) as error:
        raise AttentionError(f"expected to build the kernel, could not: {error}") from error
    return path


def _compile(folder: Path) -> Path:
    """The library in a folder of its own."""
    if (tool := compiler()) is None:
        raise AttentionError(
            "expected a C++ compiler (CXX, or g++) to build the kernel, found none"
        )
    headers = Path(torch.__file__).parent / "include"

    def unit(name: str, source: str, *flags: str) -> list[str]:
        out = str(folder / f"{name}.o")
        return [*tool, *_common_flags(), *flags, "-c", str(SOURCES / f"{source}.cpp"), "-o", out]

    kernels = {
        isa: unit(isa, "kernels", *flags, f"-DRANCAST_ISA={isa}") for isa, flags in KERNELS.items()
    }
    failed = _run_all(kernels)
    if "avx2" in failed:
        raise AttentionError(failed["avx2"])
    known = [f"-DRANCAST_HAS_{isa.upper()}" for isa in KERNELS if isa not in failed]
    others = {
        "dispatch": unit("dispatch", "dispatch", *known),
        "op": unit("op", "op", STABLE_ABI, f"-isystem{headers}"),
    }
    linked = folder / "attention.so"
    objects = [str(folder / f"{name}.o") for name in (*kernels, *others) if name not in failed]
    # Named so that its symbols are found; it is loaded already wherever this library is.
    torch_cpu = [f"-L{headers.with_name('lib')}", "-ltorch_cpu"]
    link = [*tool, "-shared", *_common_flags(), "-o", str(linked), *objects, *torch_cpu]
    for commands in (others, {"attention": link}):
        for words in _run_all(commands).values():
            raise AttentionError(words)
    return linked


def _run_all(commands: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Run compilers side by side; what those that fail say, by name."""
    running = {
        name: subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for name, command in commands.items()
    }
    said = {name: process.communicate()[0] for name, process in running.items()}
    return {
        name: f"expected `{' '.join(commands[name])}` to work, it said: {said[name][-2_000:]}"
        for name, process in running.items()
        if process.returncode
    }
