"""An LSTM of the forecaster's size: the opponent that shows what attention is worth.

Token inputs, scaling, embedding, copies, quantile head and loss are the forecaster's own. In the
place of each Transformer block is a bidirectional LSTM (Hochreiter and Schmidhuber 1997) over
context and future tokens, with the same pre-normalisation and residual path. KPIs of a cell meet
where the Transformer has them meet, in every second block, through the mean of their tokens at the
same patch (Zaheer et al. 2017). The width of the LSTM is that which brings the number of weights
nearest to the forecaster's.

Axis legend: B windows, K KPIs, N patches, d width, h width of the LSTM in each direction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn

from model.calibration import Calibration
from model.checkpoint import Checkpoint, file_digest
from model.config import ForecasterConfig
from model.forecaster import NORM_EPS, Forecaster
from model.rotary import RotaryTable

GATES = 4
FORGET_BIAS = 1.0
"""Added to the forget gate at the start (Jozefowicz et al. 2015)."""


class LstmBlock(nn.Module):
    """A bidirectional LSTM over the patches of each KPI, in every second block also their mean."""

    def __init__(self, config: ForecasterConfig, hidden: int, *, across_kpis: bool) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(config.width, eps=NORM_EPS)
        self.lstm = nn.LSTM(config.width, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, config.width, bias=False)
        self.kpi_norm = nn.RMSNorm(config.width, eps=NORM_EPS) if across_kpis else None
        self.kpi_out = nn.Linear(config.width, config.width, bias=False) if across_kpis else None
        with torch.no_grad():
            for name, bias in self.lstm.named_parameters():
                if name.startswith("bias_ih"):
                    bias[hidden : 2 * hidden] += FORGET_BIAS

    def forward(
        self,
        x: Tensor,
        visible: Tensor,
        rope: RotaryTable | None,
        alibi_slopes: Tensor | None,
        first: int = 0,
    ) -> Tensor:
        """Tokens (B, K, N, d) and their visibility (B, K, N) to tokens (B, K, N - first, d).

        The order of the patches is the LSTM's own, so `rope` and `alibi_slopes` are not used.
        """
        del rope, alibi_slopes
        seen = visible[..., None].to(x.dtype)  # (B, K, N, 1)
        over_time, _ = self.lstm((self.norm(x) * seen).flatten(0, 1))  # (B * K, N, 2h)
        x = x + self.out(over_time).unflatten(0, x.shape[:2])
        if self.kpi_norm is not None and self.kpi_out is not None:
            total = (self.kpi_norm(x) * seen).sum(1, keepdim=True)  # (B, 1, N, d)
            x = x + self.kpi_out(total / seen.sum(1, keepdim=True).clamp(min=1))
        return x[:, :, first:]


class LstmForecaster(Forecaster):
    """The forecaster with LSTMs in the place of its Transformer blocks."""

    def __init__(self, config: ForecasterConfig) -> None:
        super().__init__(config)
        wanted = self.parameter_count()
        self.blocks = nn.ModuleList()
        fixed = self.parameter_count()
        hidden = matching_width(config, wanted - fixed)
        self.blocks.extend(
            LstmBlock(config, hidden, across_kpis=index % 2 == 1) for index in range(config.layers)
        )


def matching_width(config: ForecasterConfig, parameters: int) -> int:
    """The h at which the LSTM blocks together come nearest to a number of weights."""
    width, layers = config.width, config.layers

    def count(hidden: int) -> int:
        one_direction = GATES * hidden * (width + hidden + 2)
        block = 2 * one_direction + 2 * hidden * width + width
        return layers * block + layers // 2 * (width * width + width)

    return min(range(1, 8 * width), key=lambda hidden: abs(count(hidden) - parameters))


@dataclass(frozen=True)
class LstmCheckpoint(Checkpoint):
    """Weights of an LSTM and their story."""

    def build(self) -> LstmForecaster:
        """The LSTM with these weights, in inference mode."""
        forecaster = LstmForecaster(self.config)
        forecaster.load_state_dict(dict(self.weights))
        return forecaster.eval().requires_grad_(False)


def load_lstm(path: Path) -> LstmCheckpoint:
    """Read an LSTM that `model.checkpoint.save_checkpoint` wrote.

    Raises:
        OSError: There is no such file.
    """
    with safe_open(path, framework="pt") as file:
        weights: Mapping[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata: Mapping[str, str] = file.metadata()
    story: dict[str, Any] = {
        name: json.loads(metadata[name]) for name in ("config", "training", "calibration")
    }
    calibration = story["calibration"]
    checkpoint = LstmCheckpoint(
        name=metadata["name"],
        version=metadata["version"],
        config=ForecasterConfig.from_dict(story["config"]),
        weights=weights,
        catalogue_version=metadata["catalogue_version"],
        training=story["training"],
        calibration=None if calibration is None else Calibration.from_dict(calibration),
    )
    return replace(checkpoint, digest=file_digest(path))
