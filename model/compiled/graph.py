"""The forecaster as a function of tensors alone, which is what a compiler takes.

Axis legend: B windows, K KPIs, N patches, M future patches, F inputs of a token.
"""

from __future__ import annotations

from enum import StrEnum

import torch
from torch import Tensor, nn

from model.compiled.target import Precision
from model.config import ForecasterConfig
from model.copies import Copies
from model.forecaster import Forecaster
from model.scaling import ScaleStats
from model.tokens import Tokens, token_width


class Shape(StrEnum):
    """Which windows a program is for: with one KPI there is nothing to attend to across KPIs."""

    SINGLE = "single"
    SEVERAL = "several"

    @staticmethod
    def of(kpis: int) -> Shape:
        """The program for so many KPIs a window."""
        return Shape.SINGLE if kpis == 1 else Shape.SEVERAL


def tensors_of(tokens: Tokens) -> list[Tensor]:
    """What the program takes in; the last one says by its length how many patches are future."""
    found = [tokens.inputs, tokens.visible, tokens.kinds]
    if tokens.copies is not None:
        found += [tokens.copies.values, tokens.copies.known]
    return [*found, torch.empty(tokens.future_patches)]


class Program(nn.Module):
    """The forecaster on `tensors_of` tokens."""

    def __init__(self, forecaster: Forecaster, precision: Precision) -> None:
        super().__init__()
        self.forecaster = forecaster
        self.is_narrow = precision is Precision.BFLOAT16

    def forward(
        self, inputs: Tensor, visible: Tensor, kinds: Tensor, *copies_and_future: Tensor
    ) -> Tensor:
        """Quantiles in scaled space, float32 (B, K, M * P, Q)."""
        *copies, future = copies_and_future
        # What scaling measured is not read by the network; it belongs to what comes after.
        stats = ScaleStats(inputs, inputs)
        known = Copies(copies[0], copies[1]) if copies else None
        tokens = Tokens(inputs, visible, kinds, future.shape[0], stats, known)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.is_narrow):
            quantiles: Tensor = self.forecaster(tokens)
        return quantiles.float()


def traced(
    forecaster: Forecaster, precision: Precision, shape: Shape
) -> torch.export.ExportedProgram:
    """The graph of the forecaster for any number of windows, patches and future patches."""
    dynamic, fixed = torch.export.Dim.AUTO, torch.export.Dim.STATIC
    kpis = fixed if shape is Shape.SINGLE else dynamic
    tensors = _example(forecaster.config, 1 if shape is Shape.SINGLE else 3)
    *windowed, _ = tensors
    shapes = [
        {axis: kpis if axis == 1 else dynamic if axis < 3 else fixed for axis in range(x.dim())}
        for x in windowed
    ]
    arguments = (*shapes[:3], (*shapes[3:], {0: dynamic}))
    with torch.no_grad():
        return torch.export.export(
            Program(forecaster, precision).eval(),
            tuple(tensors),
            dynamic_shapes=arguments,
            strict=False,
        )


def _example(config: ForecasterConfig, kpis: int) -> list[Tensor]:
    """Tensors of no meaning whose sizes differ, so that no two are taken for one."""
    windows, future, patches = 5, 3, 11
    ahead = future * config.patch
    found = [
        torch.zeros(windows, kpis, patches, token_width(config)),
        torch.ones(windows, kpis, patches, dtype=torch.bool),
        torch.zeros(windows, kpis, dtype=torch.int64),
    ]
    if config.copies:
        values = torch.zeros(windows, kpis, ahead, len(config.copies))
        found += [values, torch.ones_like(values, dtype=torch.bool)]
    return [*found, torch.empty(future)]
