"""A plan on the terminal: a few tables, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from service.plan.curves import Curve, Statistic
from service.plan.numbers import digits
from service.plan.placement import Fit
from service.plan.planning import Plan

_MIB = 1024 * 1024
_LEAST_CPU_RATIO = 0.9
"""CPU time by wall time of the calls, below which a measurement is doubtful."""


def report(plan: Plan) -> Group:
    """All that a terminal shows."""
    return Group(*_parts(plan))


def _parts(plan: Plan) -> Iterator[RenderableType]:
    yield headline(plan)
    yield call_table(plan)
    yield fit_table(plan)
    yield context_table(plan)
    yield memory_table(plan)
    for words in plan.verdicts:
        yield Text(words, style="bold")
    if doubt := doubts(plan):
        yield Text(doubt, style="yellow")


def headline(plan: Plan) -> Text:
    """What was measured, on what, how."""
    measured, load = plan.measurements, plan.measurements.workload
    node, path, model = measured.node, measured.path, measured.model
    lines = (
        f"{model.name} {model.version}, {path.kind.value} {path.precision}, attention "
        f"{path.attention}; {node.threads} of {node.cores} cores of {node.processor}",
        f"a cell: {load.kpis} KPIs x {load.history_steps:,} samples of {load.step_ms / 1000:g} s, "
        f"{load.horizon} steps at {len(load.levels)} levels; {measured.seconds:.0f} s of calls",
    )
    return Text("\n".join(lines))


def doubts(plan: Plan) -> str:
    """Why the figures may be wrong, empty where nothing says so."""
    ratio = plan.measurements.cpu_ratio
    if ratio >= _LEAST_CPU_RATIO:
        return ""
    return (
        f"The machine was busy: the calls had a processor for {ratio:.0%} of their time. Times are "
        "too long and rates too low; measure again while it is idle."
    )


def call_table(plan: Plan) -> Table:
    """Durations of calls by their size, and the line through them."""
    table = _table("one call of the model: p50 / p99 in ms")
    table.add_column("cells", justify="right", no_wrap=True)
    rungs, around = plan.measurements.rungs, plan.measurements.around
    for each in rungs:
        steps = "" if each.context_steps is None else f", {each.context_steps:,} samples"
        table.add_column(f"{each.rung.value}{steps}", justify="right")
    table.add_column("JSON", justify="right")
    sizes = [point.cells for point in rungs[0].curve.points]
    for row, cells in enumerate(sizes):
        points = [each.curve.points[row] for each in rungs]
        table.add_row(
            f"{cells}",
            *(f"{digits(point.p50_ms)} / {digits(point.p99_ms)}" for point in points),
            _both(around, cells),
            end_section=cells == sizes[-1],
        )
    table.add_row("ms a call", *(digits(each.cost.call_ms) for each in rungs))
    table.add_row("ms a 1,000 samples", *(digits(each.cost.thousand_ms) for each in rungs))
    calls = [[point.calls for point in each.curve.points] for each in rungs]
    table.add_row("calls measured", *(_span(min(each), max(each)) for each in calls))
    table.caption = "JSON: reading a request and writing its answer, which come on top"
    return table


def _both(curve: Curve, cells: int) -> str:
    p50_ms, p99_ms = (curve.duration_ms(cells, each) for each in (Statistic.P50, Statistic.P99))
    return f"{digits(p50_ms)} / {digits(p99_ms)}"


def fit_table(plan: Plan) -> Table:
    """What fits within each budget."""
    question = plan.question
    table = _table("within a budget")
    table.add_column("budget", justify="right")
    table.add_column("rung", no_wrap=True)
    table.add_column("cells in a request", justify="right")
    table.add_column("cells a call", justify="right")
    table.add_column("cells/s", justify="right")
    for period_s in question.periods_s:
        table.add_column(f"cells every {period_s:g} s", justify="right")
    before: float | None = None
    for each in plan.placement.fits:
        new = each.budget_ms != before
        if new and before is not None:
            table.add_section()
        before = each.budget_ms
        table.add_row(
            f"{each.budget_ms:g} ms" if new else "",
            each.rung.value,
            _cells(each.request_cells, question.most_cells),
            *_rates(each),
        )
    table.caption = (
        "a request: the largest that an idle node answers in time; the rest under full load, where "
        f"it may wait for one call, cells every ... s at {question.load_ratio:.0%} of that"
    )
    return table


def _rates(each: Fit) -> list[str]:
    if each.call_cells == 0:
        return ["-"] * (2 + len(each.periods))
    periods = [f"{period.cells:,}" for period in each.periods]
    return [f"{each.call_cells}", digits(each.cells_per_s), *periods]


def context_table(plan: Plan) -> Table:
    """What each bound of the context costs."""
    question = plan.question
    near = plan.placement.profiles[0]
    best = plan.measurements.rungs[0].rung
    table = _table(f"context of {best.value}: p99 from arrival to answer")
    names = ["samples", "one cell", f"{question.cells:,} cells", f"cells in {near.budget_ms:g} ms"]
    for name in names:
        table.add_column(name, justify="right")
    for each in plan.placement.contexts:
        table.add_row(
            f"{each.context_steps:,}",
            f"{digits(each.one_cell_ms)} ms",
            f"{digits(each.cells_ms)} ms",
            _cells(each.request_cells, question.most_cells),
        )
    longest = [
        "none" if steps is None else f"{steps:,} samples"
        for steps in (near.longest_context_one, near.longest_context_cells)
    ]
    table.caption = (
        f"the longest in time: {longest[0]} for one cell, {longest[1]} for {question.cells:,}"
    )
    return table


def memory_table(plan: Plan) -> Table:
    """Where memory goes."""
    measured = plan.measurements
    table = _table("memory", show_header=False)
    table.add_column("of what")
    table.add_column("how much", justify="right")
    memory = measured.memory
    if memory is None:
        table.add_row("the process", "not known: only Linux tells the peak of a process")
    else:
        table.add_row("the process with its model", f"{memory.loaded / _MIB:,.0f} MiB")
        table.add_row("each cell in a call", f"{memory.per_cell / _MIB:.2f} MiB")
    table.add_row(
        f"each stored cell ({measured.workload.kpis} KPIs)",
        f"{measured.stored_cell_bytes / 1024:,.1f} KiB",
    )
    return table


def _table(title: str, *, show_header: bool = True) -> Table:
    return Table(title=escape(title), title_justify="left", show_header=show_header)


def _cells(cells: int, most: int) -> str:
    if cells == 0:
        return "-"
    return f"{cells:,}{'+' if cells == most else ''}"


def _span(least: int, most: int) -> str:
    return f"{least}" if least == most else f"{least}-{most}"
