"""The triton kernel on a GPU: held to the definition, then timed against torch's own.

First the sweep of the tests, forward and backward, against the dense definition in float64. Then
times by CUDA events, turn by turn, medians; both sides are called as a user calls them, on inputs
that have been made beforehand. Torch gets a mask it cannot be told in a word as a matrix.

    python -m benchmarks.attention_gpu [--quick] [--json]
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.harness import Result, Unavailable, main
from model.attention import Mask, attention
from model.attention.triton_kernel import load
from tests.model.attention.sweep import SHAPES, check

SDPA = "torch SDPA"
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
CASES = 96  # masks, with and without preparation, of one shape
LENGTHS = (64, 256, 1024, 4096)
WIDTHS = (32, 64, 128)
TOKENS = 32_768  # of a batch, whatever the length
HEADS = 8
FULL_ROUNDS, QUICK_ROUNDS = 50, 10
LEAST_BLOCK_MS = 1.0

Call = Callable[[], object]


@dataclass(frozen=True)
class Ratio:
    """Medians of both sides for one shape.

    Attributes:
        shape: For a person.
        ours_ms: Ours, milliseconds of the GPU a call.
        theirs_ms: The opponent's.
    """

    shape: str
    ours_ms: float
    theirs_ms: float

    @property
    def value(self) -> float:
        """How many times faster ours is."""
        return self.theirs_ms / self.ours_ms


def wrong_cases(dtype: torch.dtype, quick: bool) -> list[str]:
    """Cases of the sweep beyond the limits of the tests, in words."""
    wrong = []
    for shape, case in itertools.product(SHAPES, range(0, CASES, 7 if quick else 1)):
        try:
            check(shape, dtype, "triton", "cuda", first=case, step=CASES)
        except AssertionError as error:
            wrong.append(str(error))
    return wrong


def milliseconds(call: Call, calls: int) -> float:
    """Time of the GPU for a call, by events around a block of them."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    begin.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / calls


def compare(shape: str, ours: Call, theirs: Call, quick: bool) -> Ratio:
    """Time both sides turn by turn, in blocks that are long enough for the events."""
    for call in (ours, theirs) * 3:  # compilation, and caches
        call()
    slowest = max(milliseconds(call, 1) for call in (ours, theirs))
    calls = max(1, round(LEAST_BLOCK_MS / max(slowest, 1e-3)))
    found: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(QUICK_ROUNDS if quick else FULL_ROUNDS):
        for is_ours in (True, False) if turn % 2 else (False, True):
            found[is_ours].append(milliseconds(ours if is_ours else theirs, calls))
    return Ratio(shape, statistics.median(found[True]), statistics.median(found[False]))


def draw(length: int, width: int, dtype: torch.dtype, learns: bool = False) -> tuple[Tensor, ...]:
    """q, k, v (B, H, N, D), normal, of as many tokens whatever the length."""
    generator = torch.Generator("cuda").manual_seed(length + width)
    shape = (max(1, TOKENS // length), HEADS, length, width)
    return tuple(
        torch.randn(shape, generator=generator, device="cuda").to(dtype).requires_grad_(learns)
        for _ in range(3)
    )


def plain(length: int, width: int, dtype: torch.dtype, causal: bool, quick: bool) -> Ratio:
    """Forward, without any other mask than the order."""
    q, k, v = draw(length, width, dtype)
    mask = Mask(causal=causal)
    return compare(
        f"n {length}, d {width}",
        lambda: attention(q, k, v, mask=mask, backend="triton"),
        lambda: scaled_dot_product_attention(q, k, v, is_causal=causal),
        quick,
    )


def window(length: int, dtype: torch.dtype, quick: bool) -> Ratio:
    """Causal, the last 256 keys; torch gets a matrix of what is visible, made beforehand."""
    q, k, v = draw(length, 64, dtype)
    mask = Mask(causal=True, window=256)
    place = torch.arange(length, device="cuda")
    visible = mask.visible(place, place)
    return compare(
        f"n {length}, window 256",
        lambda: attention(q, k, v, mask=mask, backend="triton"),
        lambda: scaled_dot_product_attention(q, k, v, attn_mask=visible),
        quick,
    )


def train(length: int, dtype: torch.dtype, quick: bool) -> Ratio:
    """Forward and backward, causal."""
    q, k, v = draw(length, 64, dtype, learns=True)
    mask = Mask(causal=True)

    def step(output: Tensor) -> None:
        torch.autograd.grad(output.sum(), (q, k, v))

    with torch.enable_grad():
        return compare(
            f"n {length}, d 64",
            lambda: step(attention(q, k, v, mask=mask, backend="triton")),
            lambda: step(scaled_dot_product_attention(q, k, v, is_causal=True)),
            quick,
        )


def _over_shapes(name: str, ratios: list[Ratio], opponent: str, gpu: str) -> Result:
    values = sorted(ratio.value for ratio in ratios)
    return Result(
        f"attention.gpu.{name}",
        statistics.median(values),
        "x",
        opponent,
        detail={
            "min": values[0],
            "max": values[-1],
            "gpu": gpu,
            "shapes": [
                {"shape": r.shape, "x": r.value, "ours_ms": r.ours_ms, "opponent_ms": r.theirs_ms}
                for r in ratios
            ],
        },
    )


def measure(quick: bool) -> Iterator[Result]:
    """All figures; those of speed have no target, as nobody has measured any yet.

    Raises:
        Unavailable: The triton kernel cannot be used here, or not on a GPU.
    """
    toolchain = load()
    if not toolchain.usable or toolchain.interpreted:
        raise Unavailable(toolchain.reason)
    gpu = toolchain.reason
    for name, dtype in TYPES.items():
        wrong = wrong_cases(dtype, quick)
        # In a narrow type the limit is a multiple of another error, which may happen to be small.
        found: dict[str, Any] = {"gpu": gpu, "cases": wrong[:20]}
        if dtype == torch.float32:
            yield Result.at_most(f"attention.gpu.{name}.wrong", len(wrong), "cases", 0, **found)
        else:
            yield Result(f"attention.gpu.{name}.wrong", len(wrong), "cases", detail=found)
    lengths = LENGTHS[:-1] if quick else LENGTHS
    with torch.no_grad():
        for name, causal in itertools.product(TYPES, (False, True)):
            ratios = [plain(n, d, TYPES[name], causal, quick) for n in lengths for d in WIDTHS]
            kind = "causal" if causal else "full"
            yield _over_shapes(f"{name}.{kind}", ratios, SDPA, gpu)
        for name in ("fp32", "bf16"):
            ratios = [window(n, TYPES[name], quick) for n in (1024, 4096)]
            yield _over_shapes(f"{name}.window256", ratios, "SDPA with a mask", gpu)
    for name in ("fp32", "bf16"):
        ratios = [train(n, TYPES[name], quick) for n in lengths]
        yield _over_shapes(f"{name}.train", ratios, SDPA, gpu)


if __name__ == "__main__":
    main("attention_gpu", measure)
