"""The state of a run on disk, so that a killed run goes on where it was.

One safetensors file beside the checkpoint in the making: weights, their running average, the best
average so far and the optimiser's moments. It is replaced in one step, so a kill leaves the old
one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from training.errors import OtherRunError, ResumeError
from training.storage import Place, write_file

FORMAT = "rancast-run/1"


@dataclass
class RunState:
    """Everything that changes while a run goes on.

    Attributes:
        step: Optimiser steps done.
        weights: Current weights by name.
        average: Exponential moving average of the weights; this is what is judged and shipped.
        best: The average with the lowest validation loss so far.
        best_loss: Its loss, infinite before the first validation.
        stale_evaluations: Validations since `best`.
        moments: Adam's first and second moments by `first.NAME` and `second.NAME`.
        losses: Validation losses so far as (step, loss).
        cpu_seconds: Processor time spent so far, over all processes of the run.
    """

    step: int
    weights: dict[str, Tensor]
    average: dict[str, Tensor]
    best: dict[str, Tensor]
    best_loss: float = float("inf")
    stale_evaluations: int = 0
    moments: dict[str, Tensor] = field(default_factory=dict)
    losses: list[tuple[int, float]] = field(default_factory=list)
    cpu_seconds: float = 0.0


def save_state(state: RunState, path: Place, fingerprint: str, run_name: str = "") -> None:
    """Write the state.

    Args:
        state: Of the run.
        path: Where to.
        fingerprint: Of the run's configuration and data.
        run_name: What the run is called, whatever its data; empty where it has no name.

    Raises:
        OSError: It cannot be written; what was there stays.
        PlaceError: It may not be written to the store.
        StoreError: The store failed.
    """
    tensors = {
        f"{part}/{name}": tensor.detach().contiguous().clone()
        for part in ("weights", "average", "best", "moments")
        for name, tensor in getattr(state, part).items()
    }
    story = {
        "step": state.step,
        "best_loss": state.best_loss,
        "stale_evaluations": state.stale_evaluations,
        "losses": state.losses,
        "cpu_seconds": state.cpu_seconds,
    }
    metadata = {
        "format": FORMAT,
        "fingerprint": fingerprint,
        "run_name": run_name,
        "story": json.dumps(story),
    }
    # Through bytes, because the library's own writing tells of a full disk by an error of its own.
    write_file(path, save(tensors, metadata=metadata))


def load_state(path: Place, fingerprint: str) -> RunState | None:
    """The saved state, or None where there is none.

    Raises:
        OtherRunError: It belongs to a run with other settings or data.
        ResumeError: The file is damaged.
    """
    if not path.exists():
        return None
    try:
        content = path.read_bytes()
        tensors = load(content)
        header_bytes = int.from_bytes(content[:8], "little")
        metadata = json.loads(content[8 : 8 + header_bytes]).get("__metadata__", {})
    except (SafetensorError, OSError, ValueError) as error:
        raise ResumeError(f"{path} is damaged ({error}); remove it to start again") from error
    if metadata.get("format") != FORMAT or metadata.get("fingerprint") != fingerprint:
        raise OtherRunError(
            f"{path} belongs to a run with other settings or data; give another --out, or remove "
            "it to start again",
            metadata.get("run_name", ""),
        )
    story = json.loads(metadata["story"])
    return RunState(
        step=story["step"],
        weights=_part(tensors, "weights"),
        average=_part(tensors, "average"),
        best=_part(tensors, "best"),
        best_loss=story["best_loss"],
        stale_evaluations=story["stale_evaluations"],
        moments=_part(tensors, "moments"),
        losses=[(int(step), float(loss)) for step, loss in story["losses"]],
        cpu_seconds=story["cpu_seconds"],
    )


def optimiser_moments(
    optimiser: torch.optim.Optimizer, names: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Adam's moments by name of the parameter; empty before the first step."""
    found: dict[str, Tensor] = {}
    for name, parameter in names.items():
        if entry := optimiser.state.get(parameter):
            found[f"first.{name}"] = entry["exp_avg"]
            found[f"second.{name}"] = entry["exp_avg_sq"]
    return found


def restore_moments(
    optimiser: torch.optim.Optimizer,
    names: Mapping[str, Tensor],
    moments: Mapping[str, Tensor],
    step: int,
) -> None:
    """Put saved moments back into a fresh optimiser."""
    for name, parameter in names.items():
        if f"first.{name}" in moments:
            optimiser.state[parameter] = {
                "step": torch.tensor(float(step)),
                "exp_avg": moments[f"first.{name}"].clone(),
                "exp_avg_sq": moments[f"second.{name}"].clone(),
            }


def _part(tensors: Mapping[str, Tensor], part: str) -> dict[str, Tensor]:
    prefix = f"{part}/"
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
