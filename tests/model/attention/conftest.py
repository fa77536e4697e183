"""What the tests of attention draw from: tensors by shape and seed, and the table of masks."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from model.attention import Mask
from model.attention.native import Kernel, load
from model.code_cache import ISA_VARIABLE
from model.shared_library import find_compiler

DrawTensors = Callable[..., tuple[Tensor, Tensor, Tensor]]
MakeMask = Callable[[str, int, int, int], Mask]


@pytest.fixture(scope="session")
def draw() -> DrawTensors:
    """q (B, H, N_q, D), k and v (B, H, N_k, D), normal, float32 unless told, with gradients."""

    def draw_tensors(
        batch: int = 2,
        heads: int = 3,
        n_q: int = 13,
        n_k: int | None = None,
        width: int = 8,
        dtype: torch.dtype = torch.float32,
        seed: int = 0,
    ) -> tuple[Tensor, Tensor, Tensor]:
        generator = torch.Generator().manual_seed(seed)
        lengths = (n_q, n_q if n_k is None else n_k, n_q if n_k is None else n_k)
        q, k, v = (
            torch.randn(batch, heads, n, width, generator=generator, dtype=torch.float64)
            for n in lengths
        )
        return tuple(t.to(dtype).requires_grad_() for t in (q, k, v))  # type: ignore[return-value]

    return draw_tensors


@pytest.fixture(scope="session")
def make_mask() -> MakeMask:
    """A mask from words; "valid" hides keys at random, "hollow" all keys of one batch row too."""

    def from_words(words: str, batch: int, heads: int, n_k: int) -> Mask:
        terms = set(words.split())
        valid = None
        if terms & {"valid", "hollow"}:
            valid = torch.rand(batch, n_k, generator=torch.Generator().manual_seed(7)) < 0.7
            if "hollow" in terms:
                valid[0] = False
        return Mask(
            causal="causal" in terms,
            window=max(1, n_k // 5) if "window" in terms else None,
            sinks=3 if "sinks" in terms else 0,
            key_valid=valid,
            alibi_slopes=2.0 ** -torch.arange(1.0, heads + 1) if "alibi" in terms else None,
        )

    return from_words


@pytest.fixture(scope="session")
def native_kernel() -> Kernel:
    """The native kernel; where it cannot be used, tests of it are skipped with the reason."""
    kernel = load()
    if not kernel.usable:
        can_be = (
            find_compiler() and platform.machine() == "x86_64" and not os.environ.get(ISA_VARIABLE)
        )
        if can_be:
            pytest.fail(f"{kernel.reason}, though there is a compiler: run `make venv`")
        pytest.skip(kernel.reason)
    return kernel
