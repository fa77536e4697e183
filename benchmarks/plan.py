"""Where this machine can be placed: the measurement of `rancast plan` as figures for the pages.

There is no opponent and no bound: how many cells a node can serve in time is for whoever runs it to
judge. A full run draws the picture of the documentation too. Run it while nothing else runs.

    python -m benchmarks.plan [--quick] [--json]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import RESULTS, Result, main
from service.plan.cli import Options, question_of, workload_of
from service.plan.curves import Point
from service.plan.document import from_document, to_document
from service.plan.drawing import DrawingError, draw
from service.plan.numbers import digits
from service.plan.planning import Plan, measure, plan_of
from service.plan.report import doubts
from service.settings import load_settings

NAME = "plan"
IMAGE = Path(__file__).resolve().parent.parent / "docs" / "images" / "plan.svg"
FULL_SECONDS, QUICK_SECONDS = 120.0, 15.0
ANSWER = f"{NAME}.everything"
_MIB = 2**20


def run(quick: bool) -> Iterator[Result]:
    """Measure with the options that `rancast plan` has by default.

    Args:
        quick: Fewer calls.
    """
    options = Options(
        horizon=24,
        kpis=4,
        step_seconds=900,
        cells=32,
        seconds=QUICK_SECONDS if quick else FULL_SECONDS,
    )
    settings = load_settings()
    measured = measure(
        settings, workload_of(options, settings), cells=options.cells, seconds=options.seconds
    )
    plan = plan_of(measured, question_of(options, settings))
    if doubt := doubts(plan):
        sys.stderr.write(f"{doubt}\n")
    yield from figures(plan)


def figures(plan: Plan) -> Iterator[Result]:
    """All figures of a plan; the last one carries the plan itself."""
    yield from _calls(plan)
    yield from _fits(plan)
    yield from _contexts(plan)
    yield from _memory(plan)
    best = plan.measurements.rungs[0].curve.points[0]
    yield Result(ANSWER, best.p50_ms, "ms", detail={"plan": to_document(plan)})


def _calls(plan: Plan) -> Iterator[Result]:
    for each in plan.measurements.rungs:
        sizes = {f"{point.cells}_cells": _both(point) for point in each.curve.points[1:]}
        one = each.curve.points[0]
        yield Result(
            f"{NAME}.call.{each.rung.value}",
            one.p50_ms,
            "ms",
            detail={
                "p99_ms": one.p99_ms,
                **sizes,
                "ms_a_call": each.cost.call_ms,
                "ms_a_thousand_samples": each.cost.thousand_ms,
            },
        )
    around = plan.measurements.around.points
    sizes = {f"{point.cells}_cells": _both(point) for point in around[1:]}
    yield Result(
        f"{NAME}.call.json", around[0].p50_ms, "ms", detail={"p99_ms": around[0].p99_ms, **sizes}
    )


def _both(point: Point) -> str:
    return f"{digits(point.p50_ms)} / {digits(point.p99_ms)}"


def _fits(plan: Plan) -> Iterator[Result]:
    for each in plan.measurements.rungs:
        fits = [fit for fit in plan.placement.fits if fit.rung is each.rung]
        largest = max(fits, key=lambda fit: fit.budget_ms)
        yield Result(
            f"{NAME}.largest_request.{each.rung.value}",
            largest.request_cells,
            "cells",
            detail={f"{fit.budget_ms:g}_ms": fit.request_cells for fit in fits},
        )
        yield Result(
            f"{NAME}.under_load.{each.rung.value}",
            largest.cells_per_s,
            "cells/s",
            detail={f"{fit.budget_ms:g}_ms": round(fit.cells_per_s) for fit in fits},
        )
        yield Result(
            f"{NAME}.served.{each.rung.value}",
            largest.periods[-1].cells,
            "cells",
            detail={
                f"{fit.budget_ms:g}_ms": " / ".join(f"{each.cells:,}" for each in fit.periods)
                for fit in fits
            },
        )


def _contexts(plan: Plan) -> Iterator[Result]:
    near_ms = plan.placement.profiles[0].budget_ms
    for each in plan.placement.contexts:
        yield Result(
            f"{NAME}.context.{each.context_steps}",
            each.one_cell_ms,
            "ms",
            detail={
                f"{plan.question.cells}_cells_ms": each.cells_ms,
                f"cells_in_{near_ms:g}_ms": each.request_cells,
            },
        )


def _memory(plan: Plan) -> Iterator[Result]:
    measured = plan.measurements
    if measured.memory is not None:
        yield Result(f"{NAME}.memory.process", measured.memory.loaded / _MIB, "MiB")
        yield Result(f"{NAME}.memory.cell_in_a_call", measured.memory.per_cell / _MIB, "MiB")
    yield Result(f"{NAME}.memory.stored_cell", measured.stored_cell_bytes / 1024, "KiB")


def recorded(results: Path = RESULTS) -> Plan:
    """The plan of the last full run."""
    record = json.loads((results / f"{NAME}.json").read_text(encoding="utf-8"))
    (answer,) = [figure for figure in record["results"] if figure["id"] == ANSWER]
    return from_document(answer["detail"]["plan"])


def draw_recorded() -> None:
    """Draw the picture from the results that are there, where the plotting library is."""
    try:
        draw(recorded(), IMAGE)
    except (DrawingError, FileNotFoundError) as reason:
        sys.stderr.write(f"{NAME}: nothing drawn: {reason}\n")


if __name__ == "__main__":
    main(NAME, run)
    draw_recorded()
