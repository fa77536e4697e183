"""Who sits the exams: both models with three seeds, the LSTM, and three kinds of positions.

Seed 0 ships; the other checkpoints lie in a folder that is not checked in, if at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.accuracy.lstm import load_lstm
from benchmarks.accuracy.parts import MODEL_PARTS
from benchmarks.accuracy.rivals import position_name
from benchmarks.harness import Unavailable
from model.checkpoint import Checkpoint, load_checkpoint
from model.config import POSITIONS
from model.pretrained import default_checkpoint_path

MODELS = ("small", "base")
SEEDS = (0, 1, 2)
LSTM = "lstm"
LIKE = "small"
"""Model that the LSTM has the size, data and budget of."""


@dataclass(frozen=True)
class Subject:
    """A forecaster that has a score sheet.

    Attributes:
        name: Of the forecaster and its sheet.
        path: Its checkpoint, which need not be there.
        parts: Parts of its sheet, keys of `MODEL_PARTS`.
        seed: Of its training, and of its tuning.
        load: Reads the checkpoint.
    """

    name: str
    path: Path
    parts: Sequence[str]
    seed: int = 0
    load: Callable[[Path], Checkpoint] = load_checkpoint

    @property
    def at_hand(self) -> bool:
        """Whether its checkpoint is there."""
        return self.path.is_file()


def model_name(model: str, seed: int) -> str:
    """Name of one seed of a model."""
    return f"rancast-{model}-seed{seed}"


def shipped_path(model: str) -> Path:
    """Where seed 0 of a model ships."""
    return default_checkpoint_path().with_name(f"rancast-{model}.safetensors")


def subjects(folder: Path) -> list[Subject]:
    """Everyone, with the checkpoints that do not ship in `folder`."""
    models = [
        Subject(
            model_name(model, seed),
            folder / f"{model_name(model, seed)}.safetensors" if seed else shipped_path(model),
            tuple(MODEL_PARTS),
            seed,
        )
        for model in MODELS
        for seed in SEEDS
    ]
    lstm = Subject(LSTM, folder / f"{LSTM}.safetensors", ("zero_shot",), load=load_lstm)
    positions = [
        Subject(name, folder / f"{name}.safetensors", ("longer_context",))
        for name in map(position_name, POSITIONS)
    ]
    return [*models, lstm, *positions]


def subject_of(path: Path) -> Subject:
    """Whose checkpoint a file is, by its name.

    Raises:
        Unavailable: It is nobody's.
    """
    everyone = subjects(path.parent)
    shipped = {shipped_path(model).name: model_name(model, 0) for model in MODELS}
    wanted = shipped.get(path.name, path.name.removesuffix(".safetensors"))
    for subject in everyone:
        if subject.name == wanted:
            return Subject(wanted, path, subject.parts, subject.seed, subject.load)
    known = ", ".join(sorted({*shipped, *(f"{each.name}.safetensors" for each in everyone)}))
    raise Unavailable(f"expected a file named as one of {known}; got {path.name}")
