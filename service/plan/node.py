"""The machine that is measured, in general terms: no host name, no address, no path."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import torch

_CPU_INFO, _MEMORY_INFO = Path("/proc/cpuinfo"), Path("/proc/meminfo")
_KIB = 1024


@dataclass(frozen=True, slots=True)
class Node:
    """What forecasts run on.

    Attributes:
        processor: The processor's own name for itself.
        architecture: Its instruction set, as `x86_64`.
        vectors: The widest vectors for which torch has code, as `AVX512`.
        cores: Cores that this process may use.
        threads: Of them, those that one inference uses.
        memory_bytes: Of the machine; None where the system does not say.
        load: Processes that wanted to run in the minute before the measurement; None where the
            system does not say.
        system: Operating system.
        python: Version of Python.
        torch: Version of torch.
        rancast: Version of rancast.
    """

    processor: str
    architecture: str
    vectors: str
    cores: int
    threads: int
    memory_bytes: int | None
    load: float | None
    system: str
    python: str
    torch: str
    rancast: str


def describe_node(threads: int) -> Node:
    """This machine, now, where one inference uses so many threads."""
    memory = _field(_MEMORY_INFO, "MemTotal").partition(" ")[0]
    return Node(
        processor=_field(_CPU_INFO, "model name") or platform.processor() or "unknown",
        architecture=platform.machine(),
        vectors=torch.backends.cpu.get_cpu_capability(),
        cores=_cores(),
        threads=threads,
        memory_bytes=int(memory) * _KIB if memory.isdecimal() else None,
        load=round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        system=platform.system(),
        python=platform.python_version(),
        torch=torch.__version__,
        rancast=version("rancast"),
    )


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _field(file: Path, name: str) -> str:
    """Value of the first `name: value` line; empty where there is no such file or line."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")
