"""Small charts as inline SVG: a page of hundreds stays light and needs no script.

Axes: L samples, P points of a curve, C curves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

SYNTHETIC_COLOUR = "#1f5fbf"
REAL_COLOURS = ("#d9822b", "#3a9d6e", "#8e5bb5", "#c0504d", "#17a2b8", "#7a6f2b")
PANEL_WIDTH, PANEL_HEIGHT = 260, 120
CHART_WIDTH, CHART_HEIGHT = 420, 220
_LEFT, _RIGHT, _BOTTOM, _TOP = 48, 18, 24, 8
_STRIP_WIDTH, _STRIP_HEIGHT = 240, 26


@dataclass(frozen=True)
class Band:
    """A range of curves and the middle of it, over the same positions.

    Attributes:
        low: (P,) lower edge.
        middle: (P,) the line in it.
        high: (P,) upper edge.
    """

    low: NDArray[np.float64]
    middle: NDArray[np.float64]
    high: NDArray[np.float64]


def panel(values: NDArray[np.float64], top: float, colour: str, label: str) -> str:
    """The course of one series from 0 (or its least value) to `top`, gaps left open.

    Args:
        values: (L,) NaN where missing.
        top: Value at the upper edge; higher ones are cut off.
        colour: Of the line.
        label: Written over it.
    """
    bottom = min(0.0, float(np.nanmin(values))) if not np.isnan(values).all() else 0.0
    span = max(top - bottom, 1e-9)
    height = (np.clip(values, bottom, top) - bottom) / span
    path = "".join(_strokes(height))
    return (
        f'<figure><figcaption>{escape(label)}</figcaption><svg class="panel" '
        f'viewBox="0 -2 {PANEL_WIDTH} {PANEL_HEIGHT + 4}" preserveAspectRatio="none">'
        f'<path d="{path}" stroke="{colour}"/></svg></figure>'
    )


def chart(
    positions: Sequence[float],
    band: Band,
    curves: Sequence[tuple[str, NDArray[np.float64]]],
    *,
    title: str,
    ticks: Sequence[tuple[float, str]],
    limits: tuple[float, float],
    marks: Sequence[tuple[float, str]],
) -> str:
    """A band of synthetic cells with the curves of real ones over it.

    Args:
        positions: (P,) places on the horizontal axis.
        band: Where the synthetic curves lie.
        curves: Name and (P,) values of C real curves.
        title: Over the chart.
        ticks: Positions and labels of the horizontal axis.
        limits: Least and greatest value shown.
        marks: Values and labels of the vertical axis.
    """
    low, high = limits
    first, last = positions[0], positions[-1]

    def across(position: float) -> float:
        share = (position - first) / max(last - first, 1e-9)
        return _LEFT + share * (CHART_WIDTH - _LEFT - _RIGHT)

    def up(value: float) -> float:
        share = (min(max(value, low), high) - low) / (high - low)
        return CHART_HEIGHT - _BOTTOM - share * (CHART_HEIGHT - _BOTTOM - _TOP)

    def line(values: NDArray[np.float64]) -> str:
        return " ".join(
            f"{across(position):.1f},{up(float(value)):.1f}"
            for position, value in zip(positions, values, strict=True)
            if not np.isnan(value)
        )

    known = ~(np.isnan(band.low) | np.isnan(band.high))
    there = np.asarray(positions)[known]
    edge = [f"{across(x):.1f},{up(y):.1f}" for x, y in zip(there, band.high[known], strict=True)]
    edge += [
        f"{across(x):.1f},{up(y):.1f}"
        for x, y in zip(there[::-1], band.low[known][::-1], strict=True)
    ]
    parts = [
        f'<line class="grid" x1="{_LEFT}" x2="{CHART_WIDTH - _RIGHT}" y1="{up(value):.1f}" '
        f'y2="{up(value):.1f}"/><text x="{_LEFT - 5}" y="{up(value) + 4:.1f}" '
        f'text-anchor="end">{escape(label)}</text>'
        for value, label in marks
    ]
    parts += [
        f'<text x="{across(position):.1f}" y="{CHART_HEIGHT - 6}" text-anchor="middle">'
        f"{escape(label)}</text>"
        for position, label in ticks
    ]
    parts.append(f'<polygon class="band" points="{" ".join(edge)}"/>')
    parts.append(f'<polyline points="{line(band.middle)}" stroke="{SYNTHETIC_COLOUR}"/>')
    parts += [
        f'<polyline points="{line(values)}" stroke="{real_colour(index)}">'
        f"<title>{escape(name)}</title></polyline>"
        for index, (name, values) in enumerate(curves)
    ]
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>"
        f'<svg class="chart" viewBox="0 0 {CHART_WIDTH} {CHART_HEIGHT}">{"".join(parts)}</svg>'
        "</figure>"
    )


def rank_strip(ranks: Sequence[tuple[str, ArrayLike]]) -> str:
    """Where real figures lie among the synthetic ones: 0 below all of them, 1 above all.

    The shaded part is where the middle nine tenths of the synthetic cells are.

    Args:
        ranks: Name and ranks of each real KPI, one row of ticks a KPI.
    """
    row = (_STRIP_HEIGHT - 4) / max(len(ranks), 1)
    ticks = []
    for index, (name, values) in enumerate(ranks):
        # Close marks cannot be told apart, and a log of thousands would make the page heavy.
        places = np.unique(np.round(np.asarray(values, dtype=np.float64), 2))
        top = 2 + index * row
        marks = "".join(f"M{place * _STRIP_WIDTH:.0f} {top:.1f}v{row:.1f}" for place in places)
        ticks.append(
            f'<path d="{marks}" stroke="{real_colour(index)}"><title>{escape(name)}</title></path>'
        )
    return (
        f'<svg class="strip" width="{_STRIP_WIDTH}" height="{_STRIP_HEIGHT}">'
        f'<rect width="{_STRIP_WIDTH}" height="{_STRIP_HEIGHT}" fill="#f3f4f6"/>'
        f'<rect x="{0.05 * _STRIP_WIDTH:.0f}" width="{0.9 * _STRIP_WIDTH:.0f}" '
        f'height="{_STRIP_HEIGHT}" class="band"/>{"".join(ticks)}</svg>'
    )


def real_colour(index: int) -> str:
    """Colour of the real KPI number `index`; they repeat."""
    return REAL_COLOURS[index % len(REAL_COLOURS)]


def _strokes(height: NDArray[np.float64]) -> Iterator[str]:
    """Path data of heights (L,) in 0..1: each pixel's least and greatest sample, in their order."""
    buckets = min(len(height), PANEL_WIDTH)
    edges = np.linspace(0, len(height), buckets + 1).astype(int)
    scale = PANEL_WIDTH / max(buckets - 1, 1)
    pen_down = False
    for index, (start, end) in enumerate(pairwise(edges)):
        part = height[start:end]
        present = np.flatnonzero(~np.isnan(part))
        if not len(present):
            pen_down = False
            continue
        least, most = (
            present[int(np.argmin(part[present]))],
            present[int(np.argmax(part[present]))],
        )
        for at in sorted({int(least), int(most)}):
            y = round((1.0 - float(part[at])) * PANEL_HEIGHT)
            yield f"{'L' if pen_down else 'M'}{round(index * scale)} {y}"
            if not pen_down:
                yield "h1"  # a lone sample between gaps is still a mark
            pen_down = True
