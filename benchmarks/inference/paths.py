"""The ways in which the network is computed here; everything around it is one code for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from model import compiled
from model.checkpoint import Checkpoint
from model.compiled.build import compile_checkpoint
from model.errors import ArtifactError
from model.tokens import Tokens

Precision = Literal["fp32", "bf16", "int8"]

EAGER = "eager torch"


@dataclass(frozen=True)
class Path:
    """One way to compute the network.

    Attributes:
        name: For people.
        forecaster: From tokens to quantiles in scaled space (B, K, future samples, Q).
        precision: In which products are computed.
    """

    name: str
    forecaster: Callable[[Tokens], Tensor]
    precision: Precision = "fp32"


def eager_path(checkpoint: Checkpoint) -> Path:
    """The forecaster as torch runs it, operator by operator."""
    return Path(EAGER, checkpoint.build())


def our_paths(checkpoint: Checkpoint, say: Callable[[str], None]) -> Sequence[Path]:
    """Our own ways, the eager one first; what is not compiled yet is compiled.

    Args:
        checkpoint: Whose network it is.
        say: Told what is being done, and why a way is left out.
    """
    paths = [eager_path(checkpoint)]
    names: dict[compiled.Precision, Precision] = {
        compiled.Precision.FLOAT32: "fp32",
        compiled.Precision.BFLOAT16: "bf16",
    }
    for precision, name in names.items():
        try:
            artifact = compile_checkpoint(checkpoint, precision, on_progress=say)
        except ArtifactError as error:
            say(f"{precision} is left out: {error}")
        else:
            paths.append(Path(f"compiled {name}", compiled.CompiledNetwork(artifact), name))
    return paths
