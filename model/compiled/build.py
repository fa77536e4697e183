"""Making an artifact: the graph is traced, compiled, tried against the checkpoint, and kept.

The compiler is torch's (AOTInductor, with weights frozen into the programs and laid out for the
processor), which needs a C++ compiler. It takes a minute or two and most of a gigabyte, so a
service has it done in a process of its own.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch

from kpi.catalogue import load_catalogue
from model.checkpoint import Checkpoint
from model.code_cache import locked
from model.compiled.artifact import (
    Artifact,
    artifact_folder,
    file_digest,
    file_names,
    find_artifact,
    program_name,
    remove_old,
    write_artifact,
)
from model.compiled.choice import wanted_precisions
from model.compiled.graph import Shape, traced
from model.compiled.network import CompiledNetwork
from model.compiled.runner import compile_runner
from model.compiled.target import Precision, Target, multiplies_bfloat16
from model.compiled.trial import TOLERANCES, Movement, movement, trial_windows
from model.errors import ArtifactError, SelfTestError
from model.shared_library import compiler
from model.transformer import TransformerPredictor

_INTERMEDIATE_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"
_OPTIONS = {"freezing": True, "cpp.dynamic_threads": True, "compile_threads": 1}
"""Weights become constants, the number of threads is asked when a program runs, and the compiler
starts no workers of its own."""

_WORDS = {Shape.SINGLE: "cells with one KPI", Shape.SEVERAL: "cells with several KPIs"}
_SCRATCH, _LOCK = "making-", "lock"
_SHOWN_LINES = 12


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


def compile_checkpoint(
    checkpoint: Checkpoint,
    precision: Precision,
    *,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Artifact:
    """Compile a checkpoint for this machine, unless that has been done.

    Processes that share a cache do it one after the other, and the later ones find it done.

    Args:
        checkpoint: What to compile.
        precision: Type of the products.
        on_progress: Told in words what is being done.

    Returns:
        The artifact.

    Raises:
        ArtifactError: There is no compiler, it fails, or the cache cannot be written.
        SelfTestError: The self-test does not hold, now or when it was made.
    """
    if precision is Precision.BFLOAT16 and not multiplies_bfloat16():
        raise ArtifactError(
            "expected a processor with AVX512-BF16 or AMX for bfloat16, this one has neither; "
            "compile for float32"
        )
    folder = artifact_folder(checkpoint, precision)
    artifact = _found(checkpoint, precision, on_progress)
    if artifact is None:
        try:
            folder.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            with locked(folder.parent / _LOCK):
                artifact = _found(checkpoint, precision, on_progress)
                if artifact is None:
                    artifact = _make(checkpoint, precision, folder, on_progress)
        except OSError as error:
            raise ArtifactError(f"expected to write {folder}, could not: {error}") from error
    if not artifact.is_faithful:
        raise SelfTestError(
            f"expected {precision} to move the quantiles of {checkpoint.name} by no more than "
            f"{TOLERANCES[precision]} of their 80 % interval, it moves them by {artifact.moved}"
        )
    return artifact


def measure_movement(checkpoint: Checkpoint, artifact: Artifact) -> Movement:
    """How far compiled code moves the quantiles of a checkpoint, see `model.compiled.trial`.

    Raises:
        ArtifactError: The code cannot be loaded.
    """
    catalogue = load_catalogue()
    return movement(
        TransformerPredictor(checkpoint, catalogue),
        TransformerPredictor(checkpoint, catalogue, network=CompiledNetwork(artifact)),
        trial_windows(checkpoint.config),
        checkpoint.config.levels,
    )


def _found(
    checkpoint: Checkpoint, precision: Precision, on_progress: Callable[[str], None]
) -> Artifact | None:
    """What has been made; what cannot be used is told of and made again."""
    try:
        return find_artifact(checkpoint, precision)
    except ArtifactError as error:
        on_progress(str(error))
        return None


def _make(
    checkpoint: Checkpoint,
    precision: Precision,
    folder: Path,
    on_progress: Callable[[str], None],
) -> Artifact:
    begin = time.monotonic()
    # Who holds the lock is alone, so these are of processes that were killed.
    for left_over in folder.parent.glob(f"{_SCRATCH}*"):
        shutil.rmtree(left_over, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=folder.parent) as scratch:
        made = Path(scratch) / "made"
        made.mkdir()
        compile_runner(made)
        with _intermediate(Path(scratch) / "intermediate"):
            for shape in Shape:
                on_progress(f"compiling for {precision}, {_WORDS[shape]}")
                _compile(checkpoint, precision, shape, made)
        unproven = Artifact(
            folder=made,
            target=Target.of(checkpoint, precision),
            digests={name: file_digest(made / name) for name in file_names()},
            moved=Movement(0, 0),
            seconds=time.monotonic() - begin,
        )
        on_progress("comparing with the checkpoint itself")
        moved = measure_movement(checkpoint, unproven)
        artifact = replace(unproven, folder=folder, moved=moved)
        write_artifact(made, artifact)
    remove_old(checkpoint, artifact)
    return artifact


def _compile(checkpoint: Checkpoint, precision: Precision, shape: Shape, folder: Path) -> None:
    compiler()  # torch's own words for none are many
    try:
        # Where gradients could be asked, weights would not become constants, without a word.
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # torch warns of its own parts
            torch._inductor.aoti_compile_and_package(
                traced(checkpoint.build(), precision, shape),
                package_path=str(folder / program_name(shape)),
                inductor_configs=_OPTIONS,
            )
    except Exception as error:  # whatever a compiler fails with, there is no artifact
        lines = [line for line in str(error).splitlines() if line.strip()]
        words = "\n".join(lines[-_SHOWN_LINES:]) or type(error).__name__
        raise ArtifactError(f"{checkpoint.name} cannot be compiled; the last words: {words}") from (
            error
        )


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
