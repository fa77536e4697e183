"""What compiled code is made for: it is right for nothing else."""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

import torch

from model.attention.native import load
from model.checkpoint import Checkpoint

_DESCRIPTION = (
    *("vendor_id", "cpu family", "model", "model name", "stepping"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part"),
)
_ABILITIES = ("flags", "Features")
_NARROW_FLAGS = frozenset({"avx512_bf16", "amx_bf16"})
_CPU_INFO = Path("/proc/cpuinfo")
_KEY_DIGITS = 16


class Precision(StrEnum):
    """Type in which weights are multiplied; sums, norms and residuals are float32 in either."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


@dataclass(frozen=True)
class Target:
    """Everything that decides the code.

    Attributes:
        checkpoint: Digest of the weights' file.
        precision: Type of the products.
        processor: The processor in words, with a digest of what it can do.
        system: Version of the C library.
        attention: `native` where the attention kernel is called, `torch` where its place is taken.
        torch: Version of torch.
        code: Digest of this package's sources.
    """

    checkpoint: str
    precision: Precision
    processor: str
    system: str
    attention: str
    torch: str
    code: str

    @staticmethod
    def of(checkpoint: Checkpoint, precision: Precision) -> Target:
        """A checkpoint on this machine, by this version."""
        return Target(
            checkpoint=checkpoint.digest,
            precision=precision,
            processor=processor(),
            system="-".join(platform.libc_ver()),
            attention="native" if load().usable else "torch",
            torch=torch.__version__,
            code=_code_digest(),
        )

    @property
    def key(self) -> str:
        """A short name that differs wherever the code would."""
        story = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(story.encode()).hexdigest()[:_KEY_DIGITS]


def multiplies_bfloat16() -> bool:
    """Whether the processor has instructions for products of bfloat16."""
    return bool(_NARROW_FLAGS & set(_cpu_info().get("flags", "").split()))


@cache
def processor() -> str:
    """The processor, as far as compiled code depends on it."""
    info = _cpu_info()
    named = " ".join(info[name] for name in _DESCRIPTION if name in info) or platform.processor()
    abilities = sorted(word for name in _ABILITIES for word in info.get(name, "").split())
    digest = hashlib.sha256(" ".join(abilities).encode()).hexdigest()[:8]
    return f"{platform.machine()} {named} {digest}"


@cache
def _cpu_info() -> dict[str, str]:
    """The first processor's entry of Linux' list, empty where there is none."""
    try:
        first = _CPU_INFO.read_text(encoding="utf-8").partition("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


@cache
def _code_digest() -> str:
    """Of every source of this package: which of them reach the graph is not worth guessing."""
    folder = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for path in sorted([*folder.rglob("*.py"), *folder.rglob("compiled/csrc/*")]):
        digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return digest.hexdigest()[:_KEY_DIGITS]
