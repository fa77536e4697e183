"""The curves of attention as plots for the documentation, from the results that are checked in.

The same results give the same bytes: a test holds the pictures to them. `draw_all()` draws them;
`python -m benchmarks.attention_curves` measures first. Needs the extra `benchmark`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from benchmarks.harness import RESULTS

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
NAME = "attention_curves"
# Colours of Okabe and Ito, told apart by those who do not see some of them; markers differ too.
OURS, THEIRS, THIRD, GREY = "#0072B2", "#D55E00", "#009E73", "#7A7A7A"
STYLE: dict[Any, Any] = {
    "svg.hashsalt": NAME,
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "axes.grid": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "legend.frameon": False,
}
PANELS = {
    "full": ("every key", "torch SDPA"),
    "causal": ("causal", "torch SDPA"),
    "window256": ("causal, window of 256", "torch SDPA with a mask"),
}

Curve = tuple[list[int], list[float]]


def curves(results: Path = RESULTS) -> Mapping[str, Curve]:
    """Lengths and values by the name of the curve, for example `time.full.native`."""
    record = json.loads((results / f"{NAME}.json").read_text(encoding="utf-8"))
    return {figure["id"].removeprefix(f"{NAME}."): _curve(figure) for figure in record["results"]}


def _curve(figure: Mapping[str, Any]) -> Curve:
    points = figure["detail"]["points"]
    (unit,) = {key for point in points for key in point if key != "n"}
    return [point["n"] for point in points], [point[unit] for point in points]


def time_figure(found: Mapping[str, Curve]) -> Figure:
    """Time against the length, one panel a mask."""
    figure = Figure(figsize=(10.4, 3.8), layout="constrained")
    panels = figure.subplots(1, len(PANELS), sharex=True, sharey=True)
    for axes, (kind, (title, opponent)) in zip(panels, PANELS.items(), strict=True):
        axes.plot(*found[f"time.{kind}.native"], "o-", color=OURS, label="native")
        axes.plot(*found[f"time.{kind}.sdpa"], "s--", color=THEIRS, label=opponent)
        axes.set_title(title)
        _logarithmic(axes, found[f"time.{kind}.native"][0])
        axes.legend(loc="upper left")
    panels[0].set_ylabel("CPU time of a call, ms")
    return figure


def memory_figure(found: Mapping[str, Curve]) -> Figure:
    """Peak memory of a call against the length."""
    figure = Figure(figsize=(6.2, 4.0), layout="constrained")
    axes = figure.subplots()
    axes.plot(*found["memory.naive"], "^:", color=THEIRS, label="naive: a dense array of scores")
    axes.plot(*found["memory.tiled"], "s--", color=THIRD, label="tiled, in torch")
    axes.plot(*found["memory.native"], "o-", color=OURS, label="native")
    lengths = found["memory.native"][0]
    output = [4 * 4 * 32 * n / 2**20 for n in lengths]
    axes.plot(lengths, output, color=GREY, linewidth=1.0, label="the output alone", zorder=1)
    _logarithmic(axes, lengths)
    axes.set_ylabel("peak memory of a call, MiB")
    axes.legend(loc="upper left")
    return figure


def _logarithmic(axes: Axes, lengths: list[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks([n for n in lengths if n in (16, 64, 256, 1024, 4096, 16_384)])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("tokens n")


def draw_all(results: Path = RESULTS, folder: Path = IMAGES) -> list[Path]:
    """Write all plots as SVG.

    Returns:
        Their paths.
    """
    found = curves(results)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    with mpl.rc_context(STYLE):
        for name, draw in (("time", time_figure), ("memory", memory_figure)):
            path = folder / f"attention-{name}.svg"
            figure = draw(found)
            figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
            paths.append(path)
    return paths
