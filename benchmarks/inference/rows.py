"""From timings to the figures that the issues name. All times are of the CPU, not the wall."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.harness import Result
from benchmarks.inference.paths import EAGER, Precision
from benchmarks.inference.shapes import Shape

FP32_RATIOS = {1: 1.0, 32: 1.1}
BF16_RATIOS = {1: 4.0, 32: 4.0}
BEST_RATIO = 1.0

FP32_RIVALS = "the faster of ONNX Runtime and OpenVINO, fp32"
NARROW_RIVALS = "the faster of OpenVINO bf16 and ONNX Runtime int8"
NO_BF16 = "no path of ours computes in bfloat16 here"


@dataclass(frozen=True)
class Timing:
    """One path at one shape.

    Attributes:
        path: Its name.
        precision: In which it computes products.
        is_ours: Whether it is no opponent.
        whole_ms: From windows to forecasts, median.
        quartile_range_ms: Spread of the same.
        network_ms: The network alone, median; None where it was not timed.
        moved: Farthest that a quantile lies from the eager path's, in scaled space.
        cpu_per_wall: CPU time by wall time; clearly above 1, more than one thread is at work.
    """

    path: str
    precision: Precision
    is_ours: bool
    whole_ms: float
    quartile_range_ms: float = 0.0
    network_ms: float | None = None
    moved: float = 0.0
    cpu_per_wall: float = 1.0


@dataclass(frozen=True)
class Measured:
    """All paths at one shape.

    Attributes:
        shape: Its size.
        timings: Of every path.
        around_ms: All but the network (windows to tokens, and what follows), None where it was
            not timed.
    """

    shape: Shape
    timings: Sequence[Timing]
    around_ms: float | None = None

    def fastest(self, precisions: Sequence[Precision], *, is_ours: bool) -> Timing | None:
        """The fastest path of these precisions, ours or an opponent's."""
        found = [t for t in self.timings if t.is_ours == is_ours and t.precision in precisions]
        return min(found, key=lambda timing: timing.whole_ms, default=None)

    def eager(self) -> Timing | None:
        """The forecaster in eager torch."""
        return next((timing for timing in self.timings if timing.path == EAGER), None)


@dataclass(frozen=True)
class Ratio:
    """Ours against the other at one shape."""

    shape: Shape
    ours: Timing
    other: Timing

    @property
    def value(self) -> float:
        """How many times faster ours is."""
        return self.other.whole_ms / self.ours.whole_ms


def rows(measured: Sequence[Measured], isa: str) -> Iterator[Result]:
    """Every figure for which the paths are there.

    Args:
        measured: Of each shape the timings.
        isa: What our attention kernel runs on.
    """
    batches: dict[int, list[Measured]] = {}
    for each in measured:
        batches.setdefault(each.shape.windows, []).append(each)
    for windows, group in batches.items():
        ratios = _ratios(group, ("fp32",), ("fp32",))
        yield from _worst(f"fp32.b{windows}", ratios, FP32_RATIOS[windows], FP32_RIVALS, isa, group)
    for windows, group in batches.items():
        found = [(each, each.fastest(("bf16",), is_ours=True), each.eager()) for each in group]
        ratios = [Ratio(m.shape, ours, eager) for m, ours, eager in found if ours and eager]
        yield from _worst(f"bf16.b{windows}", ratios, BF16_RATIOS[windows], EAGER, isa, group)
    ratios = _ratios(measured, ("bf16",), ("bf16", "int8"))
    yield from _worst("bf16.vs_best", ratios, BEST_RATIO, NARROW_RIVALS, isa, measured)


def lacking(measured: Sequence[Measured]) -> str:
    """Why some figures are not there, empty where all are."""
    ours = [each.fastest(("bf16",), is_ours=True) for each in measured]
    return "" if all(ours) else f"inference.bf16.* not measured: {NO_BF16}"


def _ratios(
    group: Sequence[Measured], ours: Sequence[Precision], theirs: Sequence[Precision]
) -> list[Ratio]:
    found = [
        (each, each.fastest(ours, is_ours=True), each.fastest(theirs, is_ours=False))
        for each in group
    ]
    return [Ratio(each.shape, own, other) for each, own, other in found if own and other]


def _worst(
    name: str,
    ratios: Sequence[Ratio],
    least: float,
    opponent: str,
    isa: str,
    group: Sequence[Measured],
) -> Iterator[Result]:
    """The worst shape; none where a shape lacks a side."""
    if not ratios or len(ratios) < len(group):
        return
    worst = min(ratios, key=lambda ratio: ratio.value)
    yield Result.at_least(
        f"inference.{name}",
        worst.value,
        "x",
        least,
        opponent=opponent,
        ours=worst.ours.path,
        faster_opponent=worst.other.path,
        kpis=worst.shape.kpis,
        ours_ms=worst.ours.whole_ms,
        opponent_ms=worst.other.whole_ms,
        isa=isa,
        shapes=[_described(each, ratio) for each, ratio in zip(group, ratios, strict=True)],
    )


def _described(measured: Measured, ratio: Ratio) -> dict[str, Any]:
    return {
        **asdict(measured.shape),
        "x": ratio.value,
        "ours": ratio.ours.path,
        "opponent": ratio.other.path,
        "around_ms": measured.around_ms,
        "paths": [asdict(timing) for timing in measured.timings],
    }
