"""What is timed, and how: turn by turn, on one thread, by CPU time."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial

import torch
from torch import Tensor

from benchmarks.harness import Result, run_interleaved, spread
from benchmarks.inference.opponents import check_installed, opponents
from benchmarks.inference.paths import EAGER, Path, our_paths
from benchmarks.inference.rows import Measured, Timing, lacking, rows
from benchmarks.inference.shapes import HORIZON, LEVELS, SHAPES, Shape, draw_windows
from kpi.catalogue import load_catalogue
from model.attention.native import load
from model.checkpoint import Checkpoint, load_checkpoint
from model.forecaster import Network
from model.pretrained import default_checkpoint_path
from model.tokens import Tokens
from model.transformer import TransformerPredictor

MOST_MOVED = 1e-4
"""By which a quantile may lie elsewhere where the precision is the same, in scaled space."""

FULL_ROUNDS = {1: 101, 32: 15}
QUICK_ROUNDS = {1: 15, 32: 3}
FULL_WARMUPS, QUICK_WARMUPS = 3, 1
THREAD_CALLS = 5
AROUND = "around the network"

Call = Callable[[], object]


class Disagreement(Exception):
    """A path computes something else; its time would mean nothing."""


def measure(quick: bool) -> Iterator[Result]:
    """All figures.

    Args:
        quick: Fewer rounds, and only whole calls.

    Raises:
        Unavailable: The opponents are not installed.
        Disagreement: A path in float32 does not give the eager path's quantiles.
    """
    check_installed()
    torch.set_num_threads(1)
    checkpoint = load_checkpoint(default_checkpoint_path())
    ours = our_paths(checkpoint, _say)
    rounds = QUICK_ROUNDS if quick else FULL_ROUNDS
    measured = [
        measure_shape(checkpoint, ours, shape, rounds[shape.windows], whole_only=quick)
        for shape in SHAPES
    ]
    if reason := lacking(measured):
        _say(reason)
    yield from rows(measured, load().isa or "none")


def _say(words: str) -> None:
    sys.stderr.write(f"{words}\n")


def measure_shape(
    checkpoint: Checkpoint,
    ours: Sequence[Path],
    shape: Shape,
    rounds: int,
    *,
    whole_only: bool = False,
) -> Measured:
    """Time every path on windows of one size.

    Args:
        checkpoint: Whose forecaster all compute.
        ours: Our own paths, the eager one first.
        shape: Size of a call.
        rounds: Timed turns of each path.
        whole_only: Leave out the network alone, and the work around it.

    Raises:
        Disagreement: A path in float32 does not give the eager path's quantiles.
    """
    catalogue, windows, eager = load_catalogue(), draw_windows(shape), ours[0]

    def whole(network: Network) -> Call:
        predictor = TransformerPredictor(checkpoint, catalogue, network=network)
        return partial(predictor.predict, windows, HORIZON, LEVELS)

    tokens = _tokens_of(whole)
    with torch.inference_mode():
        answer = eager.forecaster(tokens)
        paths = [*ours, *opponents(checkpoint.build(), tokens)]
        moved = {path.name: _moved(answer, path, tokens) for path in paths}
        calls = {path.name: whole(path.forecaster) for path in paths}
        alone: dict[str, Call] = {}
        if not whole_only:
            alone = {f"{p.name}, network": partial(p.forecaster, tokens) for p in paths}
            alone[AROUND] = whole(lambda _: answer)
        seconds = run_interleaved(
            calls | alone,
            rounds,
            warmups=QUICK_WARMUPS if whole_only else FULL_WARMUPS,
            clock=time.process_time,
        )
        busy = {name: _cpu_per_wall(call) for name, call in calls.items()}

    def median_ms(name: str) -> float | None:
        return statistics.median(seconds[name]) * 1000 if name in seconds else None

    timings = []
    for path in paths:
        found = spread(seconds[path.name])
        timings.append(
            Timing(
                path.name,
                path.precision,
                is_ours=path in ours,
                whole_ms=found["median_seconds"] * 1000,
                quartile_range_ms=found["quartile_range_seconds"] * 1000,
                network_ms=median_ms(f"{path.name}, network"),
                moved=moved[path.name],
                cpu_per_wall=busy[path.name],
            )
        )
    return Measured(shape, timings, around_ms=median_ms(AROUND))


def _tokens_of(whole: Callable[[Network], Call]) -> Tokens:
    """What a call gives to its network."""
    given: list[Tokens] = []

    def keep(tokens: Tokens) -> Tensor:
        given.append(tokens)
        raise _Kept

    with suppress(_Kept):
        whole(keep)()
    return given[0]


class _Kept(Exception):
    """The rest of the call is not wanted."""


def _moved(expected: Tensor, path: Path, tokens: Tokens) -> float:
    """Farthest distance of a quantile, in scaled space."""
    distance = (path.forecaster(tokens) - expected).abs().max().item()
    if path.precision == "fp32" and not distance <= MOST_MOVED:
        raise Disagreement(
            f"expected {path.name} to give the quantiles of {EAGER} to {MOST_MOVED:g}, "
            f"got a distance of {distance:g}"
        )
    return distance


def _cpu_per_wall(call: Call) -> float:
    """CPU time by wall time, the most of a few calls: other load can only make it less."""
    most = 0.0
    for _ in range(THREAD_CALLS):
        wall, cpu = time.perf_counter(), time.process_time()
        call()
        most = max(most, (time.process_time() - cpu) / (time.perf_counter() - wall))
    return most
