"""Measurements that tests make up: curves of a line, and all that a plan needs."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from model.inference_path import InferencePath, PathKind
from model.predictor import ModelIdentity, Rung
from service.budget import Profile
from service.plan.curves import Curve, Point
from service.plan.measurements import ContextCurve, Measurements, RungCost, RungCurve
from service.plan.memory import MemoryUse
from service.plan.node import Node
from service.plan.placement import Question
from service.plan.planning import Plan, plan_of
from service.plan.workload import Workload

SIZES = (1, 2, 4, 8, 16, 32)
MIB = 2**20
durations_ms = st.floats(0.01, 1_000)


@st.composite
def curves(draw) -> Curve:
    """Any sizes, and durations as a noisy machine has them."""
    sizes = sorted({1, *draw(st.sets(st.integers(2, 64), max_size=5))})
    points = []
    for cells in sizes:
        durations = draw(st.lists(durations_ms, min_size=1, max_size=5))
        points.append(Point.of(cells, [each / 1_000 for each in durations]))
    return Curve(tuple(points))


def line(call_ms: float, cell_ms: float, sizes=SIZES, p99_ratio: float = 1.2) -> Curve:
    """Calls that take so long, and so much longer for each cell in them."""
    points = []
    for cells in sizes:
        usual_ms = call_ms + cell_ms * cells
        points.append(Point(cells, usual_ms, p99_ratio * usual_ms, usual_ms, 100))
    return Curve(tuple(points))


def rung(name: Rung, call_ms: float, cell_ms: float, steps: int | None) -> RungCurve:
    return RungCurve(name, steps, line(call_ms, cell_ms), RungCost(call_ms, cell_ms, 1.2))


def measurements(
    slower: float = 1.0, curve: Callable[[float, float], Curve] = line, cpu_ratio: float = 1.0
) -> Measurements:
    rungs = (
        rung(Rung.FULL, 2.0 * slower, 4.0 * slower, 768),
        rung(Rung.SHORT, 2.0 * slower, 1.0 * slower, 192),
        rung(Rung.BASELINE, 0.1, 0.5, None),
    )
    return Measurements(
        measured_at="2026-11-01T00:00:00+00:00",
        seconds=60.0,
        cpu_ratio=cpu_ratio,
        node=Node("A CPU", "x86_64", "AVX512", 2, 1, 4096 * MIB, 0.5, "Linux", "3", "2", "0"),
        model=ModelIdentity("made-up", "1", "sha256:0"),
        path=InferencePath(PathKind.COMPILED, "bfloat16", "avx512"),
        workload=Workload(4, 1440, 900_000, 24, (0.1, 0.5, 0.9)),
        rungs=rungs,
        around=curve(0.2, 0.1),
        contexts=(
            ContextCurve(192, line(2.0 * slower, 1.0 * slower, (1, 32))),
            ContextCurve(384, line(2.0 * slower, 2.0 * slower, (1, 32))),
            ContextCurve(768, rungs[0].curve),
        ),
        stored_cell_bytes=20_000,
        memory=MemoryUse(loaded=400 * MIB, one_cell=0, most_cells=31 * MIB, cells=32),
    )


def question(
    budgets_ms=(10.0, 100.0, 5_000.0),
    periods_s=(60.0, 900.0),
    cells: int = 32,
    near_ms: float = 100.0,
    load_ratio: float = 0.5,
) -> Question:
    return Question(
        budgets_ms=tuple(budgets_ms),
        periods_s=tuple(periods_s),
        cells=cells,
        most_cells=10_000,
        load_ratio=load_ratio,
        loop_ms={Profile.NEAR_RT: near_ms, Profile.NON_RT: 5_000.0},
    )


def made_plan(slower: float = 1.0, cells: int = 32, near_ms: float = 100.0) -> Plan:
    return plan_of(measurements(slower), question(cells=cells, near_ms=near_ms))
