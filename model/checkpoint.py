"""A checkpoint: one safetensors file that carries weights and everything needed to trust them.

The metadata holds the configuration, the catalogue's version, where the weights come from, how well
they did and how they are calibrated, each as JSON. There is no pickle, so opening a file runs
nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from model.calibration import Calibration
from model.config import ForecasterConfig
from model.errors import CheckpointError
from model.files import replace_file
from model.forecaster import Forecaster
from model.predictor import ModelIdentity

FORMAT = "rancast-checkpoint/1"


@dataclass(frozen=True)
class Checkpoint:
    """Weights and their story.

    Attributes:
        name: Name of the model, for example `rancast-small`.
        version: Version of the model.
        config: Shape of the forecaster.
        weights: Tensors by name.
        catalogue_version: Version of the KPI catalogue in force at training.
        training: Provenance: data, seed, recipe, cost.
        evaluation: Results by task.
        calibration: Shifts of the quantiles, None where the model is not calibrated.
        digest: `sha256:…` of the file it was read from, empty before it is written.
    """

    name: str
    version: str
    config: ForecasterConfig
    weights: Mapping[str, Tensor]
    catalogue_version: str
    training: Mapping[str, Any] = field(default_factory=dict)
    evaluation: Mapping[str, Any] = field(default_factory=dict)
    calibration: Calibration | None = None
    digest: str = ""

    def __post_init__(self) -> None:
        if self.calibration is not None and self.calibration.levels != self.config.levels:
            raise CheckpointError(
                f"expected the calibration of {self.name} to have the forecaster's levels "
                f"{self.config.levels}, got {self.calibration.levels}; calibrate it again"
            )

    @property
    def identity(self) -> ModelIdentity:
        """Name, version and digest, as answers carry them."""
        return ModelIdentity(self.name, self.version, self.digest)

    def with_context(self, patches: int) -> Checkpoint:
        """The same weights with another bound of the context, at least one patch."""
        return replace(self, config=replace(self.config, context_patches=patches))

    def build(self) -> Forecaster:
        """The forecaster with these weights, in inference mode.

        Raises:
            CheckpointError: The weights do not fit the configuration.
        """
        forecaster = Forecaster(self.config)
        try:
            forecaster.load_state_dict(dict(self.weights))
        except RuntimeError as error:
            raise CheckpointError(
                f"the weights of {self.name} do not fit their own configuration: {error}"
            ) from error
        return forecaster.eval().requires_grad_(False)


def save_checkpoint(checkpoint: Checkpoint, path: Path) -> str:
    """Write a checkpoint in one step, so that no reader ever sees half a file.

    Returns:
        Its digest, `sha256:…`.
    """
    content = encode_checkpoint(checkpoint)
    replace_file(path, content)
    return content_digest(content)


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    """The file that a checkpoint is; the same checkpoint gives the same bytes."""
    metadata = {
        "format": FORMAT,
        "name": checkpoint.name,
        "version": checkpoint.version,
        "catalogue_version": checkpoint.catalogue_version,
        "config": json.dumps(checkpoint.config.to_dict()),
        "training": json.dumps(dict(checkpoint.training)),
        "evaluation": json.dumps(dict(checkpoint.evaluation)),
        "calibration": json.dumps(
            None if checkpoint.calibration is None else checkpoint.calibration.to_dict()
        ),
    }
    weights = {name: tensor.detach().contiguous() for name, tensor in checkpoint.weights.items()}
    # Through bytes, because the library's own file is readable by its owner only.
    return _ordered(save(weights, metadata=metadata))


def _ordered(data: bytes) -> bytes:
    """The same file with its metadata in order; the library's is random, and so would a digest be.

    A safetensors file is the length of its header (8 bytes), the header in JSON, and the tensors.
    """
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the tensors stay aligned
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        CheckpointError: The file is missing, truncated, corrupt, of another kind or of a later
            format.
    """
    try:
        # Read once, so that the digest is that of these weights even where the file is replaced.
        content = path.read_bytes()
        weights = load(content)
        header_bytes = int.from_bytes(content[:8], "little")
        metadata = json.loads(content[8 : 8 + header_bytes]).get("__metadata__", {})
    except FileNotFoundError as error:
        raise CheckpointError(f"expected a checkpoint at {path}, found no file") from error
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(
            f"{path} is not a whole safetensors file ({error}); copy it again or train it again"
        ) from error
    return _from_metadata(path, metadata, weights, content_digest(content))


def file_digest(path: Path) -> str:
    """`sha256:…` of a file's bytes."""
    return content_digest(path.read_bytes())


def content_digest(content: bytes) -> str:
    """`sha256:…` of bytes."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _from_metadata(
    path: Path, metadata: Mapping[str, str], weights: Mapping[str, Tensor], digest: str
) -> Checkpoint:
    if metadata.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} is a safetensors file of another kind: expected format {FORMAT!r} in its "
            f"metadata, got {metadata.get('format')!r}"
        )
    if bad := [name for name, tensor in weights.items() if not torch.isfinite(tensor).all()]:
        raise CheckpointError(f"{path} holds weights that are not finite: {bad}")
    try:
        calibration = json.loads(metadata["calibration"])
        checkpoint = Checkpoint(
            name=metadata["name"],
            version=metadata["version"],
            config=ForecasterConfig.from_dict(json.loads(metadata["config"])),
            weights=weights,
            catalogue_version=metadata["catalogue_version"],
            training=json.loads(metadata["training"]),
            evaluation=json.loads(metadata["evaluation"]),
            calibration=None if calibration is None else Calibration.from_dict(calibration),
            digest=digest,
        )
    except (KeyError, json.JSONDecodeError) as error:
        raise CheckpointError(f"the metadata of {path} lacks or garbles {error}") from error
    checkpoint.build()
    return checkpoint
