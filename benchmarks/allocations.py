"""Peak memory of a call of attention, counted byte by byte in a process of its own.

A small library (`allocations.cpp`) is built with the kernel's compiler and preloaded before the
process, so that it sees what torch allocates as well as the scratch memory of the C++ kernel.

Axis legend: B batch, H heads, N tokens, D head width.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.harness import Unavailable
from model.attention import Mask, attention
from model.errors import ArtifactError
from model.shared_library import compiler, run_compiler

SOURCE = Path(__file__).with_name("allocations.cpp")
FLAGS = ("-std=c++17", "-O2", "-fPIC", "-shared", "-fno-builtin", "-fvisibility=hidden")
SHORT_LENGTH = 32


@dataclass(frozen=True)
class Job:
    """One call, or one call with its gradients.

    Attributes:
        backend: Name of the backend.
        length: N, of queries and of keys.
        heads: H; there is one batch row.
        width: D.
        window: Keys that a query sees, causally; None for all keys.
        learns: Whether gradients of q, k and v are asked too.
    """

    backend: str
    length: int
    heads: int = 4
    width: int = 32
    window: int | None = None
    learns: bool = False

    @property
    def output_bytes(self) -> int:
        """Size of the float32 output."""
        return 4 * self.heads * self.length * self.width


def peak_bytes(jobs: Sequence[Job]) -> list[int]:
    """Bytes by which memory in use grows at most during each call, its results included.

    Raises:
        Unavailable: There is no compiler, or no glibc whose allocator can be counted.
    """
    with tempfile.TemporaryDirectory() as folder:
        library = _build(Path(folder))
        done = subprocess.run(
            [sys.executable, "-c", "from benchmarks.allocations import serve; serve()"],
            env={**os.environ, "LD_PRELOAD": str(library), "OMP_NUM_THREADS": "1"},
            cwd=Path(__file__).parent.parent,
            input=json.dumps([asdict(job) for job in jobs]),
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise Unavailable(f"memory cannot be counted: {done.stderr[-2_000:]}")
    counted: list[int] = json.loads(done.stdout)
    return counted


def _build(folder: Path) -> Path:
    library = folder / "allocations.so"
    try:
        run_compiler([*compiler(), *FLAGS, str(SOURCE), "-o", str(library)])
    except ArtifactError as error:
        raise Unavailable(f"the library that counts memory cannot be built: {error}") from error
    return library


def _answer(job: Job, leaves: Sequence[Tensor]) -> object:
    q, k, v = leaves
    mask = Mask(causal=job.window is not None, window=job.window)
    output = attention(q, k, v, mask=mask, backend=job.backend)
    return torch.autograd.grad(output.sum(), leaves) if job.learns else output


def _count(job: Job, restart: Callable[[], int], peak: Callable[[], int]) -> int:
    shape = (1, job.heads, job.length, job.width)
    leaves = [torch.randn(shape).requires_grad_(job.learns) for _ in range(3)]
    _answer(job, [leaf[:, :, :SHORT_LENGTH] for leaf in leaves])  # what is made once
    gc.collect()
    before = restart()
    _answer(job, leaves)
    return peak() - before


def serve() -> None:
    """Count the jobs that standard input names, as JSON, where the library is preloaded."""
    torch.set_num_threads(1)
    preloaded = ctypes.CDLL(None)
    restart, peak = preloaded.allocations_restart, preloaded.allocations_peak
    restart.restype = peak.restype = ctypes.c_int64
    jobs = [Job(**fields) for fields in json.load(sys.stdin)]
    json.dump([_count(job, restart, peak) for job in jobs], sys.stdout)
