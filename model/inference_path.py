"""How a model is run, as an operator wants to see it and may choose it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class PathKind(StrEnum):
    """What computes the forward pass."""

    EAGER = "eager"
    COMPILED = "compiled"


class PrecisionChoice(StrEnum):
    """Which products compiled code may make; auto takes the fastest whose self-test holds."""

    AUTO = "auto"
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


@dataclass(frozen=True, slots=True)
class InferencePath:
    """One way to run a model.

    Attributes:
        kind: What computes.
        precision: Type of the products, `float32` or `bfloat16`.
        attention: Instruction set of the attention kernel (`avx512`, …), or `torch` without one.
    """

    kind: PathKind
    precision: str
    attention: str
