"""Finding, building and loading the kernel's shared library.

The library is C++ on torch's stable ABI, compiled for several instruction sets at once, of which
one is chosen when it runs.
"""

from __future__ import annotations

import ctypes
import logging
import os
import platform
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch

from model.attention.native.gradient import register
from model.code_cache import FLAGS_VARIABLE, ISA_VARIABLE, is_ours
from model.errors import ArtifactError
from model.shared_library import SharedLibrary, compiler, run_compiler, run_compilers

SOURCES = Path(__file__).parent / "csrc"
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
    if lacking := lacking_platform():
        return Kernel(None, lacking)
    try:
        path = kernel_library().find()
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


def lacking_platform() -> str | None:
    """Why there can be no kernel for this kind of machine, None where there can."""
    if platform.machine() in ("x86_64", "AMD64") and platform.system() == "Linux":
        return None
    return f"no kernel for {platform.system()} on {platform.machine()}"


def kernel_library() -> SharedLibrary:
    """The library for these sources and this torch."""
    made_with = (_common_flags(), dict(KERNELS), torch.__version__, platform.libc_ver())
    return SharedLibrary("attention", SOURCES, SOURCES.with_name("lib"), made_with, _compile)


def _common_flags() -> tuple[str, ...]:
    return (*COMMON_FLAGS, *os.environ.get(FLAGS_VARIABLE, "").split())


def _compile(folder: Path) -> Path:
    """The library in a folder of its own.

    A compiler that does not know an instruction set leaves it out; without AVX2 there is no kernel.
    """
    tool = compiler()
    headers = Path(torch.__file__).parent / "include"

    def unit(name: str, source: str, *flags: str) -> list[str]:
        out = str(folder / f"{name}.o")
        return [*tool, *_common_flags(), *flags, "-c", str(SOURCES / f"{source}.cpp"), "-o", out]

    kernels = {
        isa: unit(isa, "kernels", *flags, f"-DRANCAST_ISA={isa}") for isa, flags in KERNELS.items()
    }
    failed = run_compilers(kernels)
    if "avx2" in failed:
        raise ArtifactError(failed["avx2"])
    known = [f"-DRANCAST_HAS_{isa.upper()}" for isa in KERNELS if isa not in failed]
    others = {
        "dispatch": unit("dispatch", "dispatch", *known),
        "op": unit("op", "op", STABLE_ABI, f"-isystem{headers}"),
    }
    for words in run_compilers(others).values():
        raise ArtifactError(words)
    linked = folder / "attention.so"
    objects = [str(folder / f"{name}.o") for name in (*kernels, *others) if name not in failed]
    # Named so that its symbols are found; it is loaded already wherever this library is.
    torch_cpu = [f"-L{headers.with_name('lib')}", "-ltorch_cpu"]
    run_compiler([*tool, "-shared", *_common_flags(), "-o", str(linked), *objects, *torch_cpu])
    return linked
