"""Making an artifact: the graph is traced, compiled, tried against the checkpoint, and kept.

The compiler is torch's (AOTInductor, with weights frozen into the programs and laid out for the
processor), which needs a C++ compiler. It takes a minute or two and most of a gigabyte, so a
service has it done in a process of its own.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from kpi.catalogue import load_catalogue
from model.attention.native.library import compiler
from model.checkpoint import Checkpoint
from model.compiled.artifact import (
    Artifact,
    artifact_folder,
    file_digest,
    find_artifact,
    program_path,
    remove_others,
    write_artifact,
)
from model.compiled.choice import wanted_precisions
from model.compiled.graph import Shape, traced
from model.compiled.network import CompiledNetwork
from model.compiled.target import Precision, Target, multiplies_bfloat16
from model.compiled.trial import MOST_MOVED_RATIO, moved_ratio, trial_windows
from model.errors import ArtifactError, SelfTestError
from model.transformer import TransformerPredictor

_INTERMEDIATE_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"
_OPTIONS = {"freezing": True, "cpp.dynamic_threads": True, "compile_threads": 1}
"""Weights become constants, the number of threads is asked when a program runs, and the compiler
starts no processes that would outlive a service that is stopped meanwhile."""

_WORDS = {Shape.SINGLE: "cells with one KPI", Shape.SEVERAL: "cells with several KPIs"}


def compile_checkpoint(
    checkpoint: Checkpoint,
    precision: Precision,
    *,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Artifact:
    """Compile a checkpoint for this machine, unless that has been done.

    Args:
        checkpoint: What to compile.
        precision: Type of the products.
        on_progress: Told in words what is being done.

    Returns:
        The artifact; it appears in the cache in one step.

    Raises:
        ArtifactError: There is no compiler, it fails, the cache cannot be written, or the self-test
            does not hold.
    """
    try:
        if found := find_artifact(checkpoint, precision):
            return found
    except ArtifactError as error:
        on_progress(str(error))
    if precision is Precision.BFLOAT16 and not multiplies_bfloat16():
        raise ArtifactError(
            "expected a processor with AVX512-BF16 or AMX for bfloat16, this one has neither; "
            "compile for float32"
        )
    if compiler() is None:
        raise ArtifactError("expected a C++ compiler (CXX, or g++), found none")
    folder = artifact_folder(checkpoint, precision)
    begin = time.monotonic()
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            made = Path(scratch) / "made"
            made.mkdir()
            with _intermediate(Path(scratch) / "intermediate"):
                for shape in Shape:
                    on_progress(f"compiling for {precision}, {_WORDS[shape]}")
                    _compile(checkpoint, precision, shape, made)
            artifact = Artifact(
                folder=made,
                target=Target.of(checkpoint, precision),
                digests={shape: file_digest(program_path(made, shape)) for shape in Shape},
                moved_ratio=0.0,
                seconds=time.monotonic() - begin,
            )
            on_progress("comparing with the checkpoint itself")
            moved = self_test(checkpoint, artifact)
            kept = Artifact(folder, artifact.target, artifact.digests, moved, artifact.seconds)
            write_artifact(made, kept)
    except OSError as error:
        raise ArtifactError(f"expected to write {folder}, could not: {error}") from error
    remove_others(kept)
    return kept


def compile_best(
    checkpoint: Checkpoint,
    precision: Precision | None = None,
    *,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Artifact:
    """Compile a checkpoint for the fastest precision for which its self-test holds.

    Args:
        checkpoint: What to compile.
        precision: Only this one; None leaves the choice.
        on_progress: Told in words what is being done.

    Raises:
        ArtifactError: See `compile_checkpoint`.
    """
    *others, last = wanted_precisions(precision)
    for candidate in others:
        try:
            return compile_checkpoint(checkpoint, candidate, on_progress=on_progress)
        except SelfTestError as error:
            on_progress(str(error))
    return compile_checkpoint(checkpoint, last, on_progress=on_progress)


def self_test(checkpoint: Checkpoint, artifact: Artifact) -> float:
    """How far compiled code moves the quantiles of a checkpoint, see `model.compiled.trial`.

    Raises:
        SelfTestError: Farther than its precision may.
    """
    catalogue = load_catalogue()
    network = CompiledNetwork(artifact)
    moved = moved_ratio(
        TransformerPredictor(checkpoint, catalogue),
        TransformerPredictor(checkpoint, catalogue, network=network),
        trial_windows(checkpoint.config),
    )
    most = MOST_MOVED_RATIO[artifact.target.precision]
    if moved > most:
        raise SelfTestError(
            f"expected {artifact.target.precision} to move no quantile of {checkpoint.name} by "
            f"more than {most:.1%} of the width of its 80 % interval, one moved by {moved:.1%}"
        )
    return moved


def _compile(checkpoint: Checkpoint, precision: Precision, shape: Shape, folder: Path) -> None:
    path = program_path(folder, shape)
    try:
        # Where gradients could be asked, weights would not become constants, without a word.
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # torch warns of its own parts
            torch._inductor.aoti_compile_and_package(
                traced(checkpoint.build(), precision, shape),
                package_path=str(path),
                inductor_configs=_OPTIONS,
            )
    except OSError:
        raise
    except Exception as error:  # whatever a compiler fails with, there is no artifact
        words = str(error).strip().splitlines() or [type(error).__name__]
        raise ArtifactError(f"{checkpoint.name} cannot be compiled: {words[0]}") from error


@contextmanager
def _intermediate(folder: Path) -> Iterator[None]:
    """Have the compiler's intermediate files in a folder that goes afterwards."""
    before = os.environ.get(_INTERMEDIATE_VARIABLE)
    os.environ[_INTERMEDIATE_VARIABLE] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_INTERMEDIATE_VARIABLE]
        else:
            os.environ[_INTERMEDIATE_VARIABLE] = before
