"""The forecaster: an encoder over patches in which the horizon is a run of empty future tokens.

One forward pass answers any horizon up to the maximum: context tokens carry samples, future tokens
carry only what is known beforehand, and the head reads quantiles off the future tokens. Attention
runs over the patches of each KPI; every second block also attends over the KPIs of a cell at the
same patch, without positions, so the order of the KPIs does not matter.

Parts: RMSNorm (Zhang and Sennrich 2019), rotary positions (Su et al. 2021), query-key normalisation
(Henry et al. 2020), SwiGLU (Shazeer 2020).

Axis legend: B windows, K KPIs, N patches, F inputs of a token, d width, H heads, D head width,
P patch, Q quantiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import torch
from torch import Tensor, nn
from torch.nn import functional

from kpi.catalogue import KpiKind
from model.attention import Mask, QkNorm, attention
from model.config import ForecasterConfig
from model.copies import Copies
from model.rotary import RotaryTable, rotary_table
from model.tokens import Tokens, token_width

NORM_EPS = 1e-6

Network = Callable[[Tokens], Tensor]
"""From tokens to quantiles in scaled space, unsorted (B, K, H, Q): a `Forecaster`, or what computes
the same."""


def alibi_slopes(heads: int) -> Tensor:
    """(H,) slopes from 1/2 down to 1/256 in a geometric row (Press et al. 2022)."""
    return 2.0 ** -torch.linspace(1, 8, heads)


class SelfAttention(nn.Module):
    """Multi-head attention with query-key normalisation over one axis of the tokens."""

    def __init__(self, config: ForecasterConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)
        self.query_norm = nn.Parameter(torch.ones(config.head_width))
        self.key_norm = nn.Parameter(torch.ones(config.head_width))

    def forward(
        self,
        x: Tensor,
        visible: Tensor,
        rope: RotaryTable | None = None,
        alibi_slopes: Tensor | None = None,
        first: int = 0,
    ) -> Tensor:
        """Attend within each row of `x`; without angles and slopes the axis has no order.

        Args:
            x: (R, N, d), R independent rows.
            visible: bool (R, N), which tokens may be looked at.
            rope: Rotary angles of the N positions.
            alibi_slopes: Slope of each head's bias against distance.
            first: Tokens before it are looked at and not answered.

        Returns:
            (R, N - first, d).
        """
        rows, tokens, _ = x.shape
        width = self.qkv.in_features
        if tokens == 1:  # the only value that there is, where it may be looked at
            alone = functional.linear(x, self.qkv.weight[2 * width :])
            answer: Tensor = self.out(torch.where(visible[..., None], alone, 0.0)[:, first:])
            return answer
        if first == 0:
            q, k, v = self._heads(self.qkv(x), 3)
        else:
            (q,) = self._heads(functional.linear(x[:, first:], self.qkv.weight[:width]), 1)
            k, v = self._heads(functional.linear(x, self.qkv.weight[width:]), 2)
        mixed = attention(
            q,  # (R, H, N - first, D)
            k,  # (R, H, N, D)
            v,
            mask=Mask(key_valid=visible, alibi_slopes=alibi_slopes),
            rope=rope,
            qk_norm=QkNorm(self.query_norm, self.key_norm, NORM_EPS),
        )
        joined: Tensor = self.out(mixed.transpose(1, 2).reshape(rows, tokens - first, width))
        return joined

    def _heads(self, projected: Tensor, parts: int) -> tuple[Tensor, ...]:
        """(R, N, parts * d) as `parts` of (R, H, N, D)."""
        rows, tokens, _ = projected.shape
        split = projected.view(rows, tokens, parts, self.heads, self.query_norm.shape[0])
        return split.permute(2, 0, 3, 1, 4).unbind()


class SwiGlu(nn.Module):
    """Gated feed-forward layer."""

    def __init__(self, config: ForecasterConfig) -> None:
        super().__init__()
        self.gate_and_value = nn.Linear(config.width, 2 * config.feedforward, bias=False)
        self.out = nn.Linear(config.feedforward, config.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(..., d) to (..., d)."""
        gate, value = self.gate_and_value(x).chunk(2, dim=-1)
        mixed: Tensor = self.out(functional.silu(gate) * value)
        return mixed


class Block(nn.Module):
    """Attention over time, in every second block also over the KPIs, then the feed-forward."""

    def __init__(self, config: ForecasterConfig, *, across_kpis: bool) -> None:
        super().__init__()
        self.time_norm = nn.RMSNorm(config.width, eps=NORM_EPS)
        self.time_attention = SelfAttention(config)
        self.kpi_norm = nn.RMSNorm(config.width, eps=NORM_EPS) if across_kpis else None
        self.kpi_attention = SelfAttention(config) if across_kpis else None
        self.mix_norm = nn.RMSNorm(config.width, eps=NORM_EPS)
        self.mix = SwiGlu(config)

    def forward(
        self,
        x: Tensor,
        visible: Tensor,
        rope: RotaryTable | None,
        alibi_slopes: Tensor | None,
        first: int = 0,
    ) -> Tensor:
        """Tokens (B, K, N, d) and their visibility (B, K, N) to tokens (B, K, N - first, d).

        Tokens before `first` are only looked at: no later layer reads their answer.
        """
        over_time = self.time_attention(
            self.time_norm(x).flatten(0, 1), visible.flatten(0, 1), rope, alibi_slopes, first
        )  # (B * K, N - first, d)
        x = x[:, :, first:] + over_time.unflatten(0, x.shape[:2])
        visible = visible[:, :, first:]
        if self.kpi_attention is not None and self.kpi_norm is not None:
            by_patch = self.kpi_norm(x).transpose(1, 2)  # (B, N, K, d)
            seen = visible.transpose(1, 2).flatten(0, 1)  # (B * N, K)
            across = self.kpi_attention(by_patch.flatten(0, 1), seen)
            x = x + across.unflatten(0, by_patch.shape[:2]).transpose(1, 2)
        mixed: Tensor = x + self.mix(self.mix_norm(x))
        return mixed


class Embedding(nn.Module):
    """From the inputs of a token to its width: a small network beside a linear path."""

    def __init__(self, config: ForecasterConfig) -> None:
        super().__init__()
        inputs = token_width(config)
        self.hidden = nn.Linear(inputs, 2 * config.width)
        self.out = nn.Linear(2 * config.width, config.width)
        self.linear = nn.Linear(inputs, config.width, bias=False)
        self.kind = nn.Embedding(len(KpiKind), config.width)

    def forward(self, inputs: Tensor, kinds: Tensor) -> Tensor:
        """Inputs (B, K, N, F) and kinds (B, K) to tokens (B, K, N, d)."""
        mixed = self.out(functional.silu(self.hidden(inputs))) + self.linear(inputs)
        embedded: Tensor = mixed + self.kind(kinds)[:, :, None]
        return embedded


class QuantileHead(nn.Module):
    """From tokens to quantiles in scaled space, as offsets to a mixture of what was seen."""

    def __init__(self, config: ForecasterConfig) -> None:
        super().__init__()
        self.shape = (config.patch, len(config.levels))
        self.norm = nn.RMSNorm(config.width, eps=NORM_EPS)
        self.hidden = nn.Linear(config.width, 2 * config.width)
        self.out = nn.Linear(2 * config.width, config.patch * len(config.levels))
        mixtures = config.patch * len(config.copies)
        self.mixture = nn.Linear(2 * config.width, mixtures) if config.copies else None

    def forward(self, x: Tensor, copies: Copies | None) -> Tensor:
        """(B, K, N, d) and candidates (B, K, N * P, C) to (B, K, N * P, Q)."""
        hidden = functional.silu(self.hidden(self.norm(x)))
        # (B, K, N * P, Q)
        offsets: Tensor = self.out(hidden).unflatten(-1, self.shape).flatten(2, 3)
        if self.mixture is None or copies is None:
            return offsets
        scores = self.mixture(hidden).unflatten(-1, (self.shape[0], -1)).flatten(2, 3)
        scores = scores.masked_fill(~copies.known, -math.inf)  # (B, K, N * P, C)
        start: Tensor = (scores.softmax(-1) * copies.values).sum(-1, keepdim=True)
        return offsets + start


class Forecaster(nn.Module):
    """The whole model. It keeps weights only: no statistics, no cache, no state of a request."""

    def __init__(self, config: ForecasterConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = Embedding(config)
        self.blocks = nn.ModuleList(
            Block(config, across_kpis=index % 2 == 1) for index in range(config.layers)
        )
        self.head = QuantileHead(config)
        self._initialise()

    def forward(self, tokens: Tokens) -> Tensor:
        """Quantiles in scaled space, unsorted: (B, K, future samples, Q)."""
        context_patches = tokens.inputs.shape[2] - tokens.future_patches
        rope, slopes = self._positions(context_patches, tokens.future_patches)
        x = self.embedding(tokens.inputs, tokens.kinds)  # (B, K, N, d)
        *blocks, last = self.blocks
        for block in blocks:
            x = block(x, tokens.visible, rope, slopes)
        x = last(x, tokens.visible, rope, slopes, context_patches)  # (B, K, future patches, d)
        quantiles: Tensor = self.head(x, tokens.copies)
        return quantiles

    def _positions(
        self, context_patches: int, future_patches: int
    ) -> tuple[RotaryTable | None, Tensor | None]:
        """Rotary angles or slopes of the time axis, as the configuration has it."""
        config = self.config
        if config.position == "alibi":
            return None, alibi_slopes(config.heads)
        if config.position == "none":
            return None, None
        positions = torch.arange(-context_patches, future_patches)
        return rotary_table(positions, config.head_width, config.rope_base), None

    def parameter_count(self) -> int:
        """Number of weights."""
        return sum(p.numel() for p in self.parameters())

    def _initialise(self) -> None:
        """Small normal weights; paths into the residual stream shrink with depth (GPT-2's rule)."""
        residual = 0.02 / math.sqrt(2 * self.config.layers)
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                is_residual = name.endswith((".out",)) and name.startswith("blocks")
                std = residual if is_residual else 1 / math.sqrt(3 * module.in_features)
                nn.init.normal_(module.weight, std=std)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)
        nn.init.zeros_(self.head.out.weight)
        if self.head.mixture is not None:
            nn.init.zeros_(self.head.mixture.weight)
        normal = NormalDist()
        start = torch.tensor([normal.inv_cdf(level) for level in self.config.levels])  # (Q,)
        with torch.no_grad():
            self.head.out.bias.copy_(start.repeat(self.config.patch))
