"""One model in service."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from model.inference_path import InferencePath
from model.predictor import ModelIdentity, Predictor
from service.engine import Ladder
from service.schemas import ModelCard

if TYPE_CHECKING:
    from model.checkpoint import Checkpoint


@dataclass(slots=True, eq=False)
class ServedModel:
    """A model that answers.

    Whoever answers a request by it reads `ladder` once: it is another one as soon as there is
    compiled code.

    Attributes:
        ladder: Its rungs.
        card: Where it comes from.
        path: How it is run, None where that is not known.
        checkpoint: What it was made of, None for a predictor of another kind.
        file: Where the checkpoint lies.
        loaded_ms: When it was loaded, in milliseconds since 1970.
    """

    ladder: Ladder
    card: ModelCard
    path: InferencePath | None = None
    checkpoint: Checkpoint | None = None
    file: Path | None = None
    loaded_ms: int | None = None

    @property
    def identity(self) -> ModelIdentity:
        """Name, version and digest."""
        return self.ladder.identity

    @property
    def key(self) -> tuple[str, str]:
        """Name and version, of which each pair is served once."""
        return self.identity.name, self.identity.version

    @property
    def predictor(self) -> Predictor:
        """Who answers at the best rung."""
        return self.ladder.predictor
