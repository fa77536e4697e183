"""The forecaster's shape, as one frozen value that a checkpoint carries, and the named presets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from model.errors import CheckpointError, ModelError

TRAINED_LEVELS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)

TOKEN_INPUTS = (
    "value",
    "day_lag",
    "week_lag",
    "day_mean",
    "week_mean",
    "month_mean",
    "recent",
    "calendar",
    "scalars",
    "planned",
    "month_quantiles",
)
"""Every group of token inputs there is, in the order in which they are laid out in a token."""

COPY_CANDIDATES = (
    "day_lag",
    "week_lag",
    "day_mean",
    "week_mean",
    "month_mean",
    "levelled_week_mean",
    "day_median",
    "week_median",
    "month_median",
    "last",
    "mean_of_16",
    "mean_of_64",
    "mean_of_256",
    "zero",
    "holiday",
    "event",
)
"""Every value that a forecast may start from (`model.copies`), in the order of the mixture."""

POSITIONS = ("rope", "alibi", "none")
"""Ways to tell the order of the patches: rotary, linear biases, or only what the tokens say."""

_COUNTS = (
    "width",
    "layers",
    "heads",
    "feedforward",
    "patch",
    "context_patches",
    "horizon_patches",
)


@dataclass(frozen=True)
class ForecasterConfig:
    """Everything that decides the shapes of the weights and of the tokens.

    Attributes:
        width: Width d of a token.
        layers: Number of blocks; every second one also attends over the KPIs of a cell.
        heads: Attention heads; `width` is a multiple of it.
        feedforward: Hidden width of the SwiGLU.
        patch: Samples in a patch P.
        context_patches: Most patches of context that enter the model.
        horizon_patches: Most future patches, so the longest horizon is this times `patch`.
        levels: Trained quantile levels, ascending.
        inputs: Groups of token inputs, a subset of `TOKEN_INPUTS` in its order. A later version may
            add groups; a checkpoint says which ones it was trained with.
        rope_base: Base of the rotary angles (Su et al. 2021).
        position: How attention over time knows the order, one of `POSITIONS`.
        copies: What the head mixes its start from, a subset of `COPY_CANDIDATES` in its order;
            where empty, it starts from nothing.
    """

    width: int = 128
    layers: int = 4
    heads: int = 4
    feedforward: int = 352
    patch: int = 16
    context_patches: int = 48
    horizon_patches: int = 12
    levels: tuple[float, ...] = TRAINED_LEVELS
    inputs: tuple[str, ...] = TOKEN_INPUTS
    rope_base: float = 10_000.0
    position: str = "rope"
    copies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in _COUNTS:
            count = getattr(self, name)
            if not isinstance(count, int) or count < 1:
                raise ModelError(f"expected {name} to be a whole number from 1, got {count!r}")
        if not self.rope_base > 0:
            raise ModelError(f"expected a rope_base above 0, got {self.rope_base}")
        if self.position not in POSITIONS:
            raise ModelError(f"expected position to be one of {POSITIONS}, got {self.position!r}")
        if len(self.levels) < 2:
            raise ModelError(f"expected at least two levels, got {self.levels}")
        if self.width % self.heads:
            raise ModelError(f"expected width {self.width} to be a multiple of {self.heads} heads")
        if list(self.levels) != sorted(set(self.levels)) or not all(0 < q < 1 for q in self.levels):
            raise ModelError(f"expected ascending levels inside (0, 1), got {self.levels}")
        for field, every in (("inputs", TOKEN_INPUTS), ("copies", COPY_CANDIDATES)):
            chosen = getattr(self, field)
            if list(chosen) != [name for name in every if name in chosen]:
                raise ModelError(f"expected {field} from {every} in that order, got {chosen}")

    @property
    def context_steps(self) -> int:
        """Most samples of context."""
        return self.context_patches * self.patch

    @property
    def max_horizon(self) -> int:
        """Longest horizon in steps."""
        return self.horizon_patches * self.patch

    @property
    def head_width(self) -> int:
        """Width of one attention head."""
        return self.width // self.heads

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a checkpoint's metadata."""
        return asdict(self)

    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> ForecasterConfig:
        """The configuration that `to_dict` wrote.

        Raises:
            CheckpointError: A field is missing, unknown or not usable here.
        """
        try:
            lists = {name: tuple(fields[name]) for name in ("levels", "inputs")}
            lists["copies"] = tuple(fields.get("copies", ()))
            return ForecasterConfig(**{**fields, **lists})
        except (KeyError, TypeError, ModelError) as error:
            raise CheckpointError(
                f"the checkpoint's configuration cannot be used by this version: {error}"
            ) from error


PRESETS: Mapping[str, ForecasterConfig] = {
    "nano": ForecasterConfig(width=64, layers=2, heads=2, feedforward=160, copies=COPY_CANDIDATES),
    "small": ForecasterConfig(
        width=160, layers=4, heads=5, feedforward=352, copies=COPY_CANDIDATES
    ),
    "base": ForecasterConfig(width=224, layers=5, heads=7, feedforward=512, copies=COPY_CANDIDATES),
}
