"""What `rancast doctor` finds: which code answers on this machine, and why.

Each finding is one line, and says whether it is fine, slower than it could be, or broken.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

from kpi.catalogue import Catalogue
from kpi.window import KpiWindow
from model import native_tokens
from model.attention.native import load
from model.checkpoint import Checkpoint, load_checkpoint
from model.compiled import best_artifact
from model.errors import ArtifactError, CheckpointError
from model.predictor import Predictor
from model.pretrained import find_checkpoint
from service.codecs.native.library import load as load_cutter
from service.loading import ladder_of, precision_of
from service.offline.timing import medians_ms
from service.settings import Compiled, load_settings

PACKAGES = ("rancast", "torch", "numpy", "fastapi")
DIGEST_LETTERS = 19


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
    yield _tokens()
    yield _samples()
    yield from _model(checkpoint, catalogue)


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


def _tokens() -> Finding:
    library = native_tokens.load()
    trouble = Trouble.SLOW if library.function is None else Trouble.NONE
    return Finding("tokens", trouble, library.reason)


def _samples() -> Finding:
    library = load_cutter()
    trouble = Trouble.SLOW if library.aside is None else Trouble.NONE
    return Finding("samples", trouble, library.reason)


def _model(path: Path | None, catalogue: Catalogue) -> Iterator[Finding]:
    try:
        checkpoint = load_checkpoint(find_checkpoint(path))
    except (CheckpointError, OSError) as error:
        yield Finding("checkpoint", Trouble.BROKEN, str(error))
        return
    predictor, finding = _compiled(checkpoint, catalogue)
    yield finding
    yield Finding(
        "checkpoint",
        Trouble.NONE,
        f"{checkpoint.name} {checkpoint.version}, {checkpoint.digest[:DIGEST_LETTERS]}…; a day of "
        f"a cell, from 28 days by the hour, takes {_forecast_ms(predictor):.1f} ms",
    )


def _compiled(checkpoint: Checkpoint, catalogue: Catalogue) -> tuple[Predictor, Finding]:
    """What would answer, and whether it is compiled code."""
    settings = load_settings()
    words = f"no code for {checkpoint.name} in the cache; `rancast compile` makes it"
    if settings.compiled is Compiled.OFF:
        words = "not wanted: RANCAST_COMPILED is off"
    else:
        try:
            artifact = best_artifact(checkpoint, precision_of(settings.precision))
            if artifact is not None:
                ladder, _ = ladder_of(checkpoint, catalogue, artifact, settings)
                _forecast_ms(ladder.predictor)  # what fails here, the service falls back from
                words = (
                    f"{artifact.target.precision} code from {artifact.folder}; in its self-test "
                    f"quantiles moved by {artifact.moved} of their 80 % interval"
                )
                return ladder.predictor, Finding("compiled", Trouble.NONE, words)
        except ArtifactError as error:
            words = str(error)
    ladder, _ = ladder_of(checkpoint, catalogue, None, settings)
    return ladder.predictor, Finding("compiled", Trouble.SLOW, words)


def _forecast_ms(predictor: Predictor) -> float:
    """Median time of a forecast of one cell."""
    hours = np.arange(28 * 24)
    load_percent = (50 + 30 * np.sin(2 * np.pi * hours / 24)).astype(np.float32)
    window = KpiWindow("doctor", ("RRU.PrbTotDl",), 0, 3_600_000, load_percent[None])
    (milliseconds,) = medians_ms([lambda: predictor.predict([window], 24, (0.1, 0.5, 0.9))])
    return milliseconds
