"""How attention grows with the length: time and memory, as curves, each with its exponent.

Time is process CPU time on one thread, both sides turn by turn, medians; memory is counted byte by
byte (`benchmarks/allocations.py`). The figure of a curve is the power of the length by which it
grows at its long end: 1 is a cost of so much a token, 2 one of so much a pair. A full run draws the
plots of the documentation too.

    python -m benchmarks.attention_curves [--quick] [--json]
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.allocations import Job, peak_bytes
from benchmarks.attention import EVERY_LENGTH, MIB, SDPA, Ratio, plain, window
from benchmarks.harness import RESULTS, Result, Unavailable, main
from model.attention.native import load

NAME = "attention_curves"
QUICK_LENGTHS = (64, 128, 256, 512, 1024)
LONGEST_NAIVE = 4096  # beyond, the dense arrays take gigabytes
LONG_END = 3  # points that the exponent is fitted to
# What a cost of so much a token may measure at most: fixed costs make it less, caches more.
LINEAR = 1.15
UNIT = "power of n"


@dataclass(frozen=True)
class Point:
    """One length.

    Attributes:
        length: N.
        value: Milliseconds or MiB.
    """

    length: int
    value: float


def exponent(points: Sequence[Point]) -> float:
    """Power of the length by which the last points grow: their least-squares slope in logarithms.

    Raises:
        ValueError: There are fewer than two points, or one is not above 0.
    """
    last = points[-LONG_END:]
    if len(last) < 2 or any(point.value <= 0 for point in last):
        raise ValueError(f"expected two points or more above 0, got {last}")
    x = [math.log(point.length) for point in last]
    y = [math.log(point.value) for point in last]
    x_mean, y_mean = sum(x) / len(x), sum(y) / len(y)
    spread = sum((a - x_mean) ** 2 for a in x)
    return sum((a - x_mean) * (b - y_mean) for a, b in zip(x, y, strict=True)) / spread


def _curve(
    name: str, points: Sequence[Point], unit: str, most: float | None, **detail: Any
) -> Result:
    shown = [{"n": point.length, unit: point.value} for point in points]
    if most is None:
        return Result(f"{NAME}.{name}", exponent(points), UNIT, detail={**detail, "points": shown})
    return Result.at_most(f"{NAME}.{name}", exponent(points), UNIT, most, **detail, points=shown)


def _times(lengths: Sequence[int], quick: bool, isa: str) -> Iterator[Result]:
    kinds: dict[str, tuple[str, Callable[[int], Ratio]]] = {
        "full": (SDPA, lambda n: plain(n, 32, torch.float32, causal=False, quick=quick)),
        "causal": (SDPA, lambda n: plain(n, 32, torch.float32, causal=True, quick=quick)),
        "window256": ("SDPA with a mask", lambda n: window(n, quick)),
    }
    for kind, (opponent, measured) in kinds.items():
        found = [(n, measured(n)) for n in lengths]
        ours = [Point(n, ratio.ours_ms) for n, ratio in found]
        theirs = [Point(n, ratio.theirs_ms) for n, ratio in found]
        most = LINEAR if kind == "window256" and not quick else None
        yield _curve(f"time.{kind}.native", ours, "ms", most, isa=isa)
        yield _curve(f"time.{kind}.sdpa", theirs, "ms", None, what=opponent)


def _memory(lengths: Sequence[int]) -> Iterator[Result]:
    naive = [n for n in lengths if n <= LONGEST_NAIVE]
    kinds = {"native": lengths, "tiled": lengths, "naive": naive}
    backends = {"naive": "reference"}
    jobs = [Job(backends.get(kind, kind), n) for kind, each in kinds.items() for n in each]
    counted = iter(peak_bytes(jobs))
    for kind, each in kinds.items():
        points = [Point(n, next(counted) / MIB) for n in each]
        most = None if kind == "naive" else LINEAR
        output_mib = Job(kind, each[-1]).output_bytes / MIB
        yield _curve(f"memory.{kind}", points, "mib", most, output_mib=output_mib)


def measure(quick: bool) -> Iterator[Result]:
    """All curves: 1 batch row, 4 heads of width 32, float32.

    Raises:
        Unavailable: The native kernel cannot be used here, or memory cannot be counted.
    """
    kernel = load()
    if kernel.isa is None:
        raise Unavailable(kernel.reason)
    torch.set_num_threads(1)
    lengths = QUICK_LENGTHS if quick else EVERY_LENGTH
    yield from _memory(lengths)
    with torch.inference_mode():
        yield from _times(lengths, quick, kernel.isa)


def draw() -> None:
    """Draw the plots from the results that are there, where the plotting library is."""
    try:
        from benchmarks.attention_plots import draw_all
    except ModuleNotFoundError as missing:
        sys.stderr.write(f"{NAME}: nothing drawn: {missing}; pip install -e '.[benchmark]'\n")
        return
    if (RESULTS / f"{NAME}.json").is_file():
        draw_all()


if __name__ == "__main__":
    main(NAME, measure)
    draw()
