"""A plan as a picture: HTML by plotly, SVG and PNG by matplotlib (the extra `benchmark`).

Both draw the same panels. The same plan gives the same bytes as SVG, so that a picture that is
checked in can be held to the figures beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.budget import Profile
from service.errors import ServiceError
from service.plan.planning import Plan
from service.plan.report import headline

# Colours of Okabe and Ito, told apart by those who do not see some of them; markers differ too.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
_GREY = "#7A7A7A"
_SALT = "rancast-plan"
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": _SALT,
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.grid": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "legend.fontsize": 9,
}
_MARKERS = "os^D"


class DrawingError(ServiceError):
    """A picture that cannot be drawn; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a panel.

    Attributes:
        name: For the legend.
        x: Where its points are.
        y: Their values, above 0.
        colour: Number of its colour and marker.
        is_dashed: Whether it is a dashed one.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: int
    is_dashed: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One diagram, both axes logarithmic.

    Attributes:
        title: Above it.
        x_title: What goes to the right.
        y_title: What goes up.
        lines: In it.
        bound: A value to stay below, with its name; None for none.
    """

    title: str
    x_title: str
    y_title: str
    lines: tuple[Line, ...]
    bound: tuple[str, float] | None = None


def panels(plan: Plan) -> tuple[Panel, ...]:
    """What is drawn: calls by their size, requests by the budget, contexts."""
    measured, placement = plan.measurements, plan.placement
    near = next(each for each in placement.profiles if each.profile is Profile.NEAR_RT)
    bound = f"near-rt, {near.budget_ms:g} ms", near.budget_ms
    calls, requests = [], []
    for colour, each in enumerate(measured.rungs):
        sizes = [point.cells for point in each.curve.points]
        p99 = [point.p99_ms for point in each.curve.points]
        calls.append(Line(f"{each.rung.value}, p99", sizes, p99, colour))
        p50 = [point.p50_ms for point in each.curve.points]
        calls.append(Line(f"{each.rung.value}, p50", sizes, p50, colour, is_dashed=True))
        fits = [f for f in placement.fits if f.rung is each.rung and f.request_cells > 0]
        requests.append(
            Line(
                each.rung.value,
                [f.budget_ms for f in fits],
                [f.request_cells for f in fits],
                colour,
            )
        )
    contexts = [each.context_steps for each in placement.contexts]
    cells = plan.question.cells
    return (
        Panel("a call of the model", "cells in it", "ms", tuple(calls), bound),
        Panel("the largest request in time", "budget, ms", "cells in it", tuple(requests)),
        Panel(
            f"the context of {measured.rungs[0].rung.value}, p99 of an answer",
            "samples of context",
            "ms",
            (
                Line("one cell", contexts, [c.one_cell_ms for c in placement.contexts], 0),
                Line(f"{cells:,} cells", contexts, [c.cells_ms for c in placement.contexts], 1),
            ),
            bound,
        ),
    )


def check_picture(path: Path) -> None:
    """Refuse a picture that cannot be drawn here, before anything is measured.

    Raises:
        DrawingError: The suffix names no format, or the library that draws it is not installed.
    """
    suffix = path.suffix.lower()
    if suffix not in _WRITERS:
        raise DrawingError(
            f"expected a picture that ends in {', '.join(_WRITERS)}, got {path.name!r}"
        )
    if suffix != ".html":
        try:
            import matplotlib  # noqa: F401
        except ModuleNotFoundError as error:
            raise DrawingError(
                f"{suffix} is drawn by matplotlib, which is not installed: "
                "pip install 'rancast[benchmark]', or ask for .html"
            ) from error


def draw(plan: Plan, path: Path) -> None:
    """Draw a plan in the format that the suffix of `path` names.

    Raises:
        DrawingError: The suffix names no format, its library is missing, or the file cannot be
            written.
    """
    check_picture(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _WRITERS[path.suffix.lower()](plan, path)
    except OSError as error:
        raise DrawingError(f"{path} cannot be written: {error.strerror or error}") from error


def _write_image(plan: Plan, path: Path) -> None:
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullFormatter

    shown = panels(plan)
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(4.2 * len(shown), 3.9), layout="constrained")
        for axes, panel in zip(figure.subplots(1, len(shown)), shown, strict=True):
            for line in panel.lines:
                axes.plot(
                    line.x,
                    line.y,
                    marker=_MARKERS[line.colour],
                    linestyle="--" if line.is_dashed else "-",
                    color=_COLOURS[line.colour],
                    label=line.name,
                )
            if panel.bound is not None:
                name, value = panel.bound
                axes.axhline(value, color=_GREY, linewidth=1.0, linestyle=":", label=name)
            axes.set(title=panel.title, xlabel=panel.x_title, ylabel=panel.y_title)
            axes.set(xscale="log", yscale="log")
            axes.set_xticks(sorted({x for line in panel.lines for x in line.x}))
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
                axis.set_minor_formatter(NullFormatter())
            axes.tick_params("x", labelsize=8)
            axes.legend(loc="best")
        kind = path.suffix.lower().removeprefix(".")
        metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
        figure.savefig(path, format=kind, dpi=150, metadata=metadata)


def _write_html(plan: Plan, path: Path) -> None:
    import plotly.graph_objects as go

    from model.fan_chart import plain_text, styled, to_html

    figures = []
    for panel in panels(plan):
        figure = go.Figure()
        for line in panel.lines:
            figure.add_scatter(
                x=list(line.x),
                y=list(line.y),
                mode="lines+markers",
                name=line.name,
                line={
                    "color": _COLOURS[line.colour],
                    "dash": "dash" if line.is_dashed else "solid",
                },
            )
        if panel.bound is not None:
            name, value = panel.bound
            figure.add_hline(y=value, line={"color": _GREY, "dash": "dot"}, annotation_text=name)
        figure.update_xaxes(type="log")
        figure.update_yaxes(type="log")
        figures.append(styled(figure, panel.title, panel.x_title, panel.y_title))
    told = "".join(
        f"<p>{plain_text(words)}</p>"
        for words in (*headline(plan).plain.splitlines(), *plan.verdicts)
    )
    page = _PAGE.format(told=told, charts=to_html(figures))
    path.write_text(page, encoding="utf-8")


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Placement</title>
<style>body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto;
padding: 0 1rem; color: #1c2430 }}</style></head><body>
<h1>Where this node can be placed</h1>
{told}
{charts}
</body></html>
"""

_WRITERS: Mapping[str, Callable[[Plan, Path], None]] = {
    ".html": _write_html,
    ".svg": _write_image,
    ".png": _write_image,
}
