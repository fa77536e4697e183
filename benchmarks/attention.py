"""The attention kernel against torch's own, on one thread of a CPU.

Process CPU time of interleaved runs, medians; both sides are called as a user calls them
(`model.attention.attention` and `torch.nn.functional.scaled_dot_product_attention`), under
`inference_mode` except for `attention.train`. bfloat16 runs on whatever the processor has for it,
which the details say (`isa`): the target is meant for AMX.

    python -m benchmarks.attention [--quick] [--json]
"""

from __future__ import annotations

import gc
import math
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import rms_norm, scaled_dot_product_attention

from benchmarks.harness import Result, Unavailable, main, run_interleaved
from model.attention import Mask, QkNorm, attention
from model.attention.native import load
from model.rotary import apply_rotary, rotary_table

SDPA = "torch SDPA"
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
USUAL_LENGTHS = (32, 64, 128, 256, 512, 1024)
WIDTHS = (32, 64)
EVERY_LENGTH = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
LEAST_BLOCK_SECONDS = 0.002
LONG_LENGTH = 16_384
MIB = 2**20
FULL_ROUNDS, QUICK_ROUNDS = 25, 5
LONG_CALL_SECONDS = 0.2
LONG_CALL_ROUNDS = 3

Call = Callable[[], object]


@dataclass(frozen=True)
class Ratio:
    """Medians of both sides for one shape.

    Attributes:
        shape: For a person.
        ours_ms: Ours, milliseconds of CPU time a call.
        theirs_ms: The opponent's.
    """

    shape: str
    ours_ms: float
    theirs_ms: float

    @property
    def value(self) -> float:
        """How many times faster ours is."""
        return self.theirs_ms / self.ours_ms


def compare(shape: str, ours: Call, theirs: Call, quick: bool) -> Ratio:
    """Time both sides turn by turn, in blocks that are long enough for the clock."""
    slowest = max(_seconds(ours), _seconds(theirs))
    calls = max(1, math.ceil(LEAST_BLOCK_SECONDS / slowest))
    rounds = QUICK_ROUNDS if quick else FULL_ROUNDS
    if slowest > LONG_CALL_SECONDS:
        rounds = LONG_CALL_ROUNDS

    def block(call: Call) -> None:
        for _ in range(calls):
            call()

    seconds = run_interleaved(
        {"ours": partial(block, ours), "theirs": partial(block, theirs)},
        rounds,
        clock=time.process_time,
    )
    ours_ms, theirs_ms = (
        statistics.median(seconds[name]) / calls * 1000 for name in ("ours", "theirs")
    )
    return Ratio(shape, ours_ms, theirs_ms)


def _seconds(call: Call) -> float:
    for _ in range(3):
        call()
    begin = time.process_time()
    call()
    return max(time.process_time() - begin, 1e-6)


def draw(
    length: int, width: int, dtype: torch.dtype, batch: int = 1, heads: int = 4
) -> tuple[Tensor, Tensor, Tensor]:
    """q, k, v (B, H, N, D), normal."""
    generator = torch.Generator().manual_seed(length + width)
    q, k, v = torch.randn(3, batch, heads, length, width, generator=generator).to(dtype)
    return q, k, v


def plain(length: int, width: int, dtype: torch.dtype, causal: bool, quick: bool) -> Ratio:
    """Without any other mask than the order."""
    q, k, v = draw(length, width, dtype)
    mask = Mask(causal=causal)
    return compare(
        f"n {length}, d {width}",
        lambda: attention(q, k, v, mask=mask, backend="native"),
        lambda: scaled_dot_product_attention(q, k, v, is_causal=causal),
        quick,
    )


def window(length: int, quick: bool) -> Ratio:
    """Causal, the last 256 keys; torch gets a matrix of what is visible, made beforehand."""
    q, k, v = draw(length, 32, torch.float32)
    mask = Mask(causal=True, window=256)
    place = torch.arange(length)
    visible = mask.visible(place, place)
    return compare(
        f"n {length}, window 256",
        lambda: attention(q, k, v, mask=mask, backend="native"),
        lambda: scaled_dot_product_attention(q, k, v, attn_mask=visible),
        quick,
    )


def alibi(length: int, quick: bool) -> Ratio:
    """Causal with linear biases; torch gets them as a matrix, made beforehand."""
    q, k, v = draw(length, 32, torch.float32)
    mask = Mask(causal=True, alibi_slopes=2.0 ** -torch.arange(1.0, 5.0))
    place = torch.arange(length)
    bias = mask.bias(place, place, torch.float32)
    assert bias is not None
    bias = bias.masked_fill(~mask.visible(place, place), -torch.inf)
    return compare(
        f"n {length}, ALiBi",
        lambda: attention(q, k, v, mask=mask, backend="native"),
        lambda: scaled_dot_product_attention(q, k, v, attn_mask=bias),
        quick,
    )


def chain(batch: int, length: int, quick: bool) -> Ratio:
    """From a projection and back: view, norm of queries and keys, rotation, attention, layout."""
    heads, width = 5, 32
    projected = torch.randn(batch, length, 3 * heads * width)
    norm = QkNorm(torch.rand(width) + 0.5, torch.rand(width) + 0.5)
    table = rotary_table(torch.arange(length), width)

    def split() -> tuple[Tensor, ...]:
        return projected.view(batch, length, 3, heads, width).permute(2, 0, 3, 1, 4).unbind()

    def ours() -> Tensor:
        q, k, v = split()
        mixed = attention(q, k, v, rope=table, qk_norm=norm, backend="native")
        return mixed.transpose(1, 2).reshape(batch, length, heads * width)

    def theirs() -> Tensor:
        q, k, v = split()
        q = apply_rotary(rms_norm(q, (width,), norm.q_weight, norm.eps), table)
        k = apply_rotary(rms_norm(k, (width,), norm.k_weight, norm.eps), table)
        mixed = scaled_dot_product_attention(q, k, v)
        return mixed.transpose(1, 2).reshape(batch, length, heads * width)

    torch.testing.assert_close(ours(), theirs(), rtol=1e-4, atol=1e-5)
    return compare(f"B {batch}, n {length}", ours, theirs, quick)


def train(length: int, quick: bool) -> Ratio:
    """Forward and backward, without a mask."""
    leaves = [x.requires_grad_() for x in draw(length, 32, torch.float32, batch=4)]

    def step(forward: Callable[..., Tensor]) -> None:
        torch.autograd.grad(forward(*leaves).sum(), leaves)

    with torch.inference_mode(False), torch.enable_grad():
        return compare(
            f"n {length}",
            lambda: step(partial(attention, backend="native")),
            lambda: step(scaled_dot_product_attention),
            quick,
        )


def _grown_mib(backend: str, length: int) -> float:
    torch.set_num_threads(1)
    q, k, v = draw(length, 32, torch.float32)
    attention(q[:, :, :32], k[:, :, :32], v[:, :, :32], backend=backend)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = _peak_mib()
    attention(q, k, v, backend=backend)
    return _peak_mib() - before


def _peak_mib() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def memory(backend: str, length: int = LONG_LENGTH) -> float:
    """MiB by which the peak of a fresh process grows in one call, its output included."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_grown_mib, (backend, length))


def _over_shapes(name: str, ratios: list[Ratio], least: float, isa: str, opponent: str) -> Result:
    values = sorted(ratio.value for ratio in ratios)
    return Result.at_least(
        f"attention.{name}",
        statistics.median(values),
        "x",
        least,
        opponent=opponent,
        min=values[0],
        max=values[-1],
        isa=isa,
        **_shapes(ratios),
    )


def _shapes(ratios: list[Ratio]) -> Mapping[str, object]:
    return {
        "shapes": [
            {"shape": r.shape, "x": r.value, "ours_ms": r.ours_ms, "opponent_ms": r.theirs_ms}
            for r in ratios
        ]
    }


def measure(quick: bool) -> Iterator[Result]:
    """All figures.

    Raises:
        Unavailable: The native kernel cannot be used here.
    """
    kernel = load()
    if kernel.isa is None:
        raise Unavailable(kernel.reason)
    torch.set_num_threads(1)
    lengths = USUAL_LENGTHS if not quick else (32, 128, 512)
    with torch.inference_mode():
        targets = {"fp32": (1.2, 1.6), "bf16": (1.4, 1.9)}
        for name, (full, causal) in targets.items():
            for kind, least in (("full", full), ("causal", causal)):
                ratios = [
                    plain(n, d, TYPES[name], kind == "causal", quick)
                    for n in lengths
                    for d in WIDTHS
                ]
                yield _over_shapes(f"{name}.{kind}", ratios, least, kernel.isa, SDPA)
        ratios = [
            plain(n, 32, torch.float32, causal, quick)
            for n in (EVERY_LENGTH if not quick else (16, 256, 2048))
            for causal in (False, True)
        ]
        worst = min(ratios, key=lambda ratio: ratio.value)
        yield Result.at_least(
            "attention.fp32.worst",
            worst.value,
            "x",
            1.0,
            opponent=SDPA,
            worst=worst.shape,
            isa=kernel.isa,
            **_shapes(ratios),
        )
        for length, least in ((1024, 5.0), (4096, 20.0)):
            found = window(length, quick)
            yield _over_shapes(
                f"window256.n{length}", [found], least, kernel.isa, "SDPA with a mask"
            )
        found_all = [
            alibi(n, quick) for n in ((128, 512, 2048) if quick else (128, 256, 512, 1024, 2048))
        ]
        yield _over_shapes("alibi", found_all, 2.2, kernel.isa, "SDPA with a prebuilt bias")
        chains = [chain(b, n, quick) for b, n in ((1, 44), (8, 44), (32, 44), (1, 60))]
        yield _over_shapes("chain", chains, 4.0, kernel.isa, "eager torch with SDPA")
    trained = [train(n, quick) for n in ((64, 256) if quick else (64, 128, 256, 512))]
    yield _over_shapes("train", trained, 1.0, kernel.isa, SDPA)
    output_mib = 4 * LONG_LENGTH * 32 * 4 / MIB
    yield Result.at_most(
        "attention.memory_mib",
        memory("native"),
        "MiB",
        output_mib + 2,
        opponent="naive",
        naive_mib_by_arithmetic=2 * 4 * LONG_LENGTH**2 * 4 / MIB,  # scores and weights
        tiled_mib=memory("tiled"),
        sdpa_mib=memory("sdpa"),
        isa=kernel.isa,
    )


if __name__ == "__main__":
    main("attention", measure)
