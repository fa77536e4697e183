"""Faster training on a CPU: bfloat16 matrix products and compiled blocks.

Weights, gradients and everything between the products stay float32, so a step is the same step up
to the rounding of the products. `torch.autocast` does the same for a forward pass, but leaves a
backward pass on a CPU slower than float32.

Axis legend: M rows, I inputs, O outputs of a linear layer.
"""

from __future__ import annotations

import shutil
from typing import Any

import torch
from torch import Tensor, nn

from model.forecaster import Forecaster

RECOMPILE_LIMIT = 64
COMPILERS = ("c++", "g++", "clang++")


class _HalfProduct(torch.autograd.Function):
    """x Wᵀ + b with bfloat16 operands and float32 sums, forward and backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """(..., I) to (..., O)."""
        rows = x.reshape(-1, x.shape[-1]).bfloat16()  # (M, I)
        half = weight.bfloat16()  # (O, I)
        ctx.save_for_backward(rows, half)
        ctx.has_bias, ctx.shape = bias is not None, x.shape
        out = nn.functional.linear(rows, half).float()  # (M, O)
        if bias is not None:
            out = out + bias
        return out.reshape(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor, Tensor | None]:
        """Gradients of x, weight and bias."""
        rows, half = ctx.saved_tensors
        gradient = gradients[0].reshape(-1, gradients[0].shape[-1])  # (M, O)
        upstream = gradient.bfloat16()
        of_x = None
        if ctx.needs_input_grad[0]:  # not so for the inputs of the tokens, the widest of all
            of_x = (upstream @ half).float().reshape(ctx.shape)
        of_weight = (upstream.t() @ rows).float()
        return of_x, of_weight, gradient.sum(0) if ctx.has_bias else None


class HalfLinear(nn.Linear):
    """A linear layer whose products are bfloat16; its weights stay float32."""

    def forward(self, input: Tensor) -> Tensor:  # the parameter's name is nn.Linear's
        """(..., I) to (..., O)."""
        out: Tensor = _HalfProduct.apply(  # type: ignore[no-untyped-call]
            input, self.weight, self.bias
        )
        return out

    @staticmethod
    def sharing(layer: nn.Linear) -> HalfLinear:
        """The same layer, with the very same weights, in this arithmetic."""
        half = HalfLinear(layer.in_features, layer.out_features, layer.bias is not None, "meta")
        half.weight, half.bias = layer.weight, layer.bias
        return half


def can_compile() -> bool:
    """Whether a C++ compiler is at hand, which compiled blocks need."""
    return any(shutil.which(name) for name in COMPILERS)


def accelerate(forecaster: Forecaster, *, compiled: bool) -> None:
    """Let a forecaster compute its products in bfloat16, and compile its parts.

    Names and weights stay what they were, so a state or checkpoint does not know of it.

    Args:
        forecaster: Changed in place.
        compiled: Compile all but the last block; takes minutes at the first steps.
    """
    for module in list(forecaster.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear:
                setattr(module, name, HalfLinear.sharing(child))
    if compiled:
        # The blocks share their code, which has variants by number of KPIs and of patches. The last
        # one answers few tokens, and would make as many variants again as all the others.
        torch._dynamo.config.recompile_limit = RECOMPILE_LIMIT
        for part in (forecaster.embedding, *forecaster.blocks[:-1], forecaster.head):
            part.compile(dynamic=True)
