"""The terminal side of `rancast compile`."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from rich.console import Console

from kpi.catalogue import Catalogue, load_catalogue
from model.checkpoint import Checkpoint, load_checkpoint
from model.code_cache import ISA_VARIABLE
from model.compiled import Artifact, CompiledNetwork
from model.compiled.build import compile_best
from model.compiled.target import Precision
from model.compiled.trial import trial_windows
from model.native_code import build_native_code
from model.pretrained import find_checkpoint
from model.transformer import TransformerPredictor
from service.codecs.native.__main__ import build as build_reader
from service.offline.timing import medians_ms

HORIZON_STEPS = 24
LEVELS = (0.1, 0.5, 0.9)


def compile_with_progress(checkpoint: Path | None, precision: Precision | None) -> None:
    """Compile a checkpoint, saying what is done and what it brought.

    Native code is built first where it is missing: what is compiled calls it.

    Args:
        checkpoint: File, or name of one that ships; by default the one that is served.
        precision: Of the products, None for the fastest whose self-test holds.

    Raises:
        ModelError: The checkpoint cannot be used or compiled.
    """
    console = Console(highlight=False, soft_wrap=True)
    found = load_checkpoint(find_checkpoint(checkpoint))

    def tell(words: str) -> None:
        console.print(words, markup=False)

    if os.environ.get(ISA_VARIABLE) != "none":
        for trouble in (*build_native_code(), build_reader()):
            if trouble is not None:
                tell(trouble)
    artifact = compile_best(found, precision, on_progress=tell)
    plain, compiled = speeds_ms(found, artifact, load_catalogue())
    tell(
        f"{found.name} {found.version} compiled for {artifact.target.precision}: {artifact.folder}"
    )
    tell(
        f"in its self-test quantiles moved by {artifact.moved} of their 80 % interval; a cell's "
        f"forecast takes {compiled:.1f} ms, before {plain:.1f} ms"
    )


def compile_in_background(checkpoint: Path | None, precision: Precision | None) -> None:
    """Compile a checkpoint for a service that waits for it, and call the kernel that it calls.

    Raises:
        ModelError: The checkpoint cannot be used or compiled.
    """
    compile_best(load_checkpoint(find_checkpoint(checkpoint)), precision, on_progress=print)


def speeds_ms(
    checkpoint: Checkpoint, artifact: Artifact, catalogue: Catalogue
) -> tuple[float, float]:
    """Median time of one cell's forecast without and with compiled code, measured in turns."""
    predictors = [
        TransformerPredictor(checkpoint, catalogue),
        TransformerPredictor(checkpoint, catalogue, network=CompiledNetwork(artifact)),
    ]
    (window, *_) = trial_windows(checkpoint.config)
    plain, compiled = medians_ms(
        [partial(p.predict, [window], HORIZON_STEPS, LEVELS) for p in predictors]
    )
    return plain, compiled
