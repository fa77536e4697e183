"""The forecaster as an ONNX graph of fixed shapes, in which attention is made of plain operations.

Axis legend: B windows, K KPIs, H heads, N_q queries, N_k keys, D head width, M future samples,
Q quantiles.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from model.attention import Mask, QkNorm, attention
from model.attention.native import load
from model.copies import Copies
from model.forecaster import Forecaster
from model.rotary import RotaryTable
from model.scaling import ScaleStats
from model.tokens import Tokens

OPSET = 18
"""Later ones have an operation for attention, which ONNX Runtime refuses with a mask of one row."""


def named_inputs(tokens: Tokens) -> dict[str, NDArray[Any]]:
    """What the graph takes in, by name; nothing is copied."""
    return {name: tensor.numpy() for name, tensor in _named(tokens).items()}


def export_onnx(forecaster: Forecaster, tokens: Tokens, path: Path) -> None:
    """Write the forecaster for tokens of these shapes.

    Args:
        forecaster: In inference mode.
        tokens: An example.
        path: Of the file.
    """
    named = _named(tokens)
    # Tensors that were made in inference mode cannot be traced.
    with torch.inference_mode(False), torch.no_grad(), _quiet():
        traced = torch.export.export(
            _Graph(forecaster, tokens.future_patches).eval(),
            tuple(tensor.clone() for tensor in named.values()),
            strict=False,
        )
        program = torch.onnx.export(
            _without_kernel(traced),
            dynamo=True,
            opset_version=OPSET,
            input_names=list(named),
            output_names=["quantiles"],
            verbose=False,
        )
    assert program is not None  # it is None only where a file was named
    program.save(path)


class _Graph(nn.Module):
    """The forecaster on tensors alone."""

    def __init__(self, forecaster: Forecaster, future_patches: int) -> None:
        super().__init__()
        self.forecaster = forecaster
        self.future_patches = future_patches

    def forward(self, inputs: Tensor, visible: Tensor, kinds: Tensor, *copies: Tensor) -> Tensor:
        """Quantiles in scaled space (B, K, M, Q)."""
        unread = ScaleStats(inputs, inputs)  # belongs to what comes after the network
        known = Copies(*copies) if copies else None
        tokens = Tokens(inputs, visible, kinds, self.future_patches, unread, known)
        quantiles: Tensor = self.forecaster(tokens)
        return quantiles


def _named(tokens: Tokens) -> Mapping[str, Tensor]:
    named = {"inputs": tokens.inputs, "visible": tokens.visible, "kinds": tokens.kinds}
    if tokens.copies is not None:
        named |= {"values": tokens.copies.values, "known": tokens.copies.known}
    return named


def _without_kernel(traced: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The same program with torch's attention in the place of ours, which ONNX does not know."""
    if not load().usable:
        return traced
    program: torch.export.ExportedProgram = traced.run_decompositions(
        {torch.ops.rancast.attention.default: _by_torch}
    )
    return program


def _by_torch(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_valid: Tensor | None,
    alibi_slopes: Tensor | None,
    q_weight: Tensor | None,
    k_weight: Tensor | None,
    cos: Tensor | None,
    sin: Tensor | None,
    eps: float,
    scale: float | None,
    causal: bool,
    window: int,
    sinks: int,
    return_lse: bool,
) -> tuple[Tensor, Tensor]:
    """Our operation, argument by argument, by the sdpa backend; the log-sum-exp is not there."""
    assert not return_lse
    mixed = attention(
        q,
        k,
        v,
        mask=Mask(causal, window or None, sinks, key_valid, alibi_slopes),
        rope=None if cos is None or sin is None else RotaryTable(cos, sin),
        qk_norm=None if q_weight is None or k_weight is None else QkNorm(q_weight, k_weight, eps),
        scale=scale,
        backend="sdpa",
    )
    return mixed, mixed.new_empty(0)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what the exporter says of itself: packages it could use, functions it will drop."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)
