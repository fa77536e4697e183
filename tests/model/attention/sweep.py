"""A kernel against the definition, over shapes and masks; also a program of its own, for native.

As a program it runs with whatever instruction set and library the environment names, so that one
machine tests the code of several, and a build with sanitisers:

    RANCAST_CPU_ISA=avx2 python -m tests.model.attention.sweep
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from model.attention import Mask, QkNorm, attention
from model.attention.native import load
from model.rotary import RotaryTable, rotary_table

SHAPES = (
    # N_q, N_k, D, H, B
    (1, 1, 32, 2, 1),
    (16, 16, 32, 4, 1),
    (97, 97, 32, 2, 2),
    (33, 128, 17, 2, 1),
    (129, 129, 64, 2, 1),
    (70, 40, 40, 1, 2),
    (5, 300, 1, 2, 1),
    (1, 97, 256, 1, 1),
    (4, 4, 32, 5, 7),
)
AS_A_PROGRAM = ((33, 128, 17, 2, 1), (70, 40, 40, 1, 2), (1, 97, 256, 1, 1), (16, 16, 32, 4, 1))
LIMITS = {torch.float32: 2e-6, torch.bfloat16: 1e-5}
ALL_LIMITS = {**LIMITS, torch.float16: 1e-5}
GRADIENT_LIMITS = {torch.float32: 1e-5, torch.bfloat16: 1e-4, torch.float16: 1e-4}


def masks(heads: int, batch: int, keys: int, seed: int, device: str = "cpu") -> Iterator[Mask]:
    """Every combination of the terms."""
    generator = torch.Generator().manual_seed(seed)
    valid = torch.rand(batch, keys, generator=generator) < 0.7
    valid[0, : keys // 2] = False
    valid = valid.to(device)
    slopes = 2.0 ** -torch.arange(1.0, heads + 1, device=device)
    for causal, window, sinks, key_valid, alibi in itertools.product(
        (False, True), (None, 3, 40), (0, 5), (None, valid), (None, slopes)
    ):
        yield Mask(causal, window, sinks if window else 0, key_valid, alibi)


def preparation(
    width: int, length: int, dtype: torch.dtype, device: str = "cpu"
) -> tuple[RotaryTable, QkNorm]:
    """Angles of `length` positions from -7 on, and gains around 1."""
    gains = torch.linspace(0.5, 1.5, width, dtype=dtype, device=device)
    table = rotary_table(torch.arange(length, device=device) - 7, width, dtype=dtype)
    return table, QkNorm(gains, gains.flip(0), 1e-6)


def wide(mask: Mask) -> Mask:
    """The same mask for float64."""
    slopes = mask.alibi_slopes
    return replace(mask, alibi_slopes=None if slopes is None else slopes.double())


def check(
    shape: tuple[int, ...],
    dtype: torch.dtype,
    backend: str = "native",
    device: str = "cpu",
    first: int = 0,
    step: int = 1,
) -> None:
    """One shape, all masks, with and without preparation, forward and backward.

    The limit is that of flash-attention's tests: twice the error of the dense formula in the same
    type, three times for gradients, and a small number. `first` and `step` take a part of them.
    """
    n_q, n_k, width, heads, batch = shape
    generator = torch.Generator().manual_seed(n_q * n_k + width)
    q, k, v = (
        torch.randn(batch, heads, n, width, generator=generator).to(device, dtype)
        for n in (n_q, n_k, n_k)
    )
    cases = itertools.product(masks(heads, batch, n_k, n_q, device), (False, True))
    for mask, prepared in itertools.islice(cases, first, None, step):
        narrow: dict[str, object] = {"mask": mask}
        exact: dict[str, object] = {"mask": wide(mask)}
        if prepared:
            length = max(n_q, n_k)
            narrow["rope"], narrow["qk_norm"] = preparation(width, length, torch.float32, device)
            exact["rope"], exact["qk_norm"] = preparation(width, length, torch.float64, device)
        answers = [
            _answer(each, options, backend)
            for each, options, backend in (
                ((q, k, v), narrow, backend),
                (tuple(t.double() for t in (q, k, v)), exact, "reference"),
                ((q, k, v), narrow, "reference"),
            )
        ]
        for place, (ours, right, dense) in enumerate(zip(*answers, strict=True)):
            factor, limits = (2, ALL_LIMITS) if place < 2 else (3, GRADIENT_LIMITS)
            if place == 1 and not prepared:  # the sum is of exact products, in float32 always
                factor, limits = 0, GRADIENT_LIMITS
            error, dense_error = _distance(ours, right), _distance(dense, right)
            assert error <= factor * dense_error + _size(right) * limits[dtype], (
                f"{backend} {shape} {dtype} {mask} prepared={prepared} result {place}: "
                f"{error} beside {dense_error}"
            )


def _answer(
    inputs: tuple[Tensor, ...], options: dict[str, object], backend: str
) -> tuple[Tensor, ...]:
    """Output and log-sum-exp without gradients asked, then the gradients."""
    with torch.no_grad():
        plain = attention(*inputs, backend=backend, return_lse=True, **options)  # type: ignore[call-overload]
    leaves = tuple(t.detach().clone().requires_grad_() for t in inputs)
    output, lse = attention(*leaves, backend=backend, return_lse=True, **options)  # type: ignore[call-overload]
    finite = torch.where(lse.isfinite(), lse, 0.0)
    weights = torch.linspace(-1, 1, output.numel(), dtype=torch.float64, device=output.device)
    weights = weights.view(output.shape)
    loss = (output * weights.to(output.dtype)).sum() + 0.1 * finite.sum()
    return *plain, *torch.autograd.grad(loss, leaves)


def _distance(ours: Tensor, right: Tensor) -> float:
    """Largest difference where there is a number; infinite where it is missing on one side only."""
    known = right.isfinite()
    if not torch.equal(ours.isfinite(), known):
        return float("inf")
    return (ours.double() - right)[known].abs().max().item() if known.any() else 0.0


def _size(right: Tensor) -> float:
    known = right[right.isfinite()]
    return 1 + (known.abs().max().item() if known.numel() else 0.0)


def main() -> None:
    torch.set_num_threads(1)
    kernel = load()
    assert kernel.usable, kernel.reason
    for shape, dtype in itertools.product(AS_A_PROGRAM, LIMITS):
        check(shape, dtype)
    sys.stdout.write(f"{kernel.isa}\n")


if __name__ == "__main__":
    main()
