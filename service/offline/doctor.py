"""What `rancast doctor` finds: which code answers on this machine, and why.

Each finding is one line, and says whether it is fine, slower than it could be, or broken.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

from kpi.catalogue import Catalogue
from kpi.window import KpiWindow
from model.attention.native import load
from model.checkpoint import load_checkpoint
from model.errors import CheckpointError
from model.predictor import Predictor
from model.pretrained import find_checkpoint
from model.transformer import TransformerPredictor

PACKAGES = ("rancast", "torch", "numpy", "fastapi")
DIGEST_LETTERS = 19
WARM_UPS, TIMED = 2, 5


class Trouble(Enum):
    """How bad a finding is."""

    NONE = "ok"
    SLOW = "slow"
    BROKEN = "broken"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        subject: What.
        trouble: How bad it is.
        words: What was found, and how to mend it.
    """

    subject: str
    trouble: Trouble
    words: str


def examine(checkpoint: Path | None, catalogue: Catalogue) -> Iterator[Finding]:
    """Look at everything that decides how fast and whether forecasts are made.

    Args:
        checkpoint: File, or name of one that ships; by default the one that is served.
        catalogue: KPI catalogue.
    """
    yield _versions()
    yield _processor()
    yield _attention()
    yield _checkpoint(checkpoint, catalogue)


def _versions() -> Finding:
    words = [f"{name} {version(name)}" for name in PACKAGES]
    return Finding(
        "versions", Trouble.NONE, ", ".join([*words, f"Python {platform.python_version()}"])
    )


def _processor() -> Finding:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return Finding(
        "processor",
        Trouble.NONE,
        f"{platform.machine()}, {cores} cores for this process, {torch.get_num_threads()} threads "
        f"of torch, which has {torch.backends.cpu.get_cpu_capability()} code",
    )


def _attention() -> Finding:
    kernel = load()
    return Finding("attention", Trouble.NONE if kernel.usable else Trouble.SLOW, kernel.reason)


def _checkpoint(path: Path | None, catalogue: Catalogue) -> Finding:
    try:
        checkpoint = load_checkpoint(find_checkpoint(path))
    except (CheckpointError, OSError) as error:
        return Finding("checkpoint", Trouble.BROKEN, str(error))
    milliseconds = _forecast_ms(TransformerPredictor(checkpoint, catalogue))
    return Finding(
        "checkpoint",
        Trouble.NONE,
        f"{checkpoint.name} {checkpoint.version}, {checkpoint.digest[:DIGEST_LETTERS]}…; a day of "
        f"a cell, from 28 days by the hour, takes {milliseconds:.1f} ms",
    )


def _forecast_ms(predictor: Predictor) -> float:
    """Median time of a forecast of one cell."""
    hours = np.arange(28 * 24)
    load_percent = (50 + 30 * np.sin(2 * np.pi * hours / 24)).astype(np.float32)
    window = KpiWindow("doctor", ("RRU.PrbTotDl",), 0, 3_600_000, load_percent[None])
    seconds = []
    for _ in range(WARM_UPS + TIMED):
        begin = time.perf_counter()
        predictor.predict([window], 24, (0.1, 0.5, 0.9))
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds[WARM_UPS:]) * 1000
