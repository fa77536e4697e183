"""The gallery as a page: synthetic cells on the left, real ones on the right, figures below.

One self-contained HTML file of inline SVG. Every series is shown over its own mean, because units
say nothing about likeness; what lies side by side has the same axes.

Axes: N series, L samples, P points of a curve.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from kpi.window import KpiWindow
from training.gallery.cells import (
    MOST_KPIS,
    RealCells,
    Span,
    SyntheticCells,
    choose_span,
    cut_real,
    draw_cells,
    draw_family,
)
from training.gallery.drawing import SYNTHETIC_COLOUR, panel, real_colour
from training.gallery.figures import curves, figure_table
from training.gallery.statistics import Series
from training.synthetic.family import MIXTURE
from training.synthetic.timing import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Regime

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #1c2430; max-width: 76rem; margin: 2rem auto;
  padding: 0 1rem; }}
.note {{ color: #5a6675; }}
.pair, .four {{ display: grid; gap: .4rem 1.2rem; grid-template-columns: 1fr 1fr; }}
.four {{ grid-template-columns: repeat(4, 1fr); }}
figure {{ margin: 0; }}
figcaption {{ font-size: .78rem; color: #5a6675; white-space: nowrap; overflow: hidden;
  text-overflow: ellipsis; }}
svg.panel {{ width: 100%; height: 74px; border-bottom: 1px solid #c9ced6; }}
svg.panel path, svg.chart polyline, svg.strip path {{ fill: none; stroke-width: 1.1;
  vector-effect: non-scaling-stroke; stroke-linejoin: round; }}
svg.chart polyline {{ stroke-width: 1.8; }}
svg.chart text {{ font-size: 11px; fill: #5a6675; }}
.band {{ fill: rgba(31,95,191,.18); }}
.grid {{ stroke: #e3e6ea; }}
table {{ border-collapse: collapse; width: 100%; margin: 1rem 0 2rem; font-size: .86rem; }}
th, td {{ text-align: right; padding: .15rem .6rem; border-bottom: 1px solid #e3e6ea; }}
th:first-child, td:first-child {{ text-align: left; }}
th {{ white-space: nowrap; }}
td:has(svg) {{ text-align: center; padding: 0; }}
tr.outside td:first-child {{ font-weight: 600; }}
.key {{ font-weight: 600; margin-right: 1rem; }}
</style></head><body>
<h1>{title}</h1>
{body}
</body></html>
"""

INTRODUCTION = """<p>What the forecaster learns from, as a person can judge it. Every course is
shown over its own mean and from zero; gaps are missing samples. Panels of one row have the same
axes. <span class="note">{what}</span></p>"""

TITLES = {
    Regime.HOUR: "Hour-like",
    Regime.MINUTE: "Minute-like",
    Regime.SECOND: "Second-like",
    Regime.DAY: "Day and week",
}

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class GalleryOptions:
    """What to show.

    Attributes:
        seed: Of everything that is drawn; the same seed gives the same page.
        cells: Rows of cells a section.
        families: Cells of each family.
        series: Synthetic series that the figures are computed from.
        regimes: Sections of the page.
    """

    seed: int = 0
    cells: int = 6
    families: int = 4
    series: int = 400
    regimes: tuple[Regime, ...] = tuple(Regime)

    def __post_init__(self) -> None:
        if min(self.cells, self.families) < 1 or self.series < self.cells:
            raise ValueError(
                f"expected at least one cell and family member, and no fewer series than cells; "
                f"got cells {self.cells}, families {self.families}, series {self.series}"
            )


def gallery_page(
    windows: Sequence[KpiWindow],
    options: GalleryOptions,
    on_progress: Progress = lambda _name, _done, _total: None,
) -> str:
    """The page as HTML.

    Args:
        windows: Recorded cells to set beside the synthetic ones; none: synthetic cells alone.
        options: What to show.
        on_progress: Takes a section's title, how many of its series are drawn, and of how many.
    """
    parts = []
    real_shown = False
    for regime in options.regimes:
        rng = np.random.default_rng([options.seed, list(Regime).index(regime)])
        span = choose_span(regime, windows)
        title = f"{TITLES[regime]}: a sample every {shown_step(span.step_ms)}"

        def tick(done: int, title: str = title) -> None:
            on_progress(title, done, options.series)

        synthetic = draw_cells(rng, span, options.series, tick)
        real = cut_real(rng, windows, span)
        real_shown = real_shown or len(real.kpis) > 0
        parts += [
            f"<h2>{escape(title)}</h2>",
            _side_by_side(synthetic, real, options.cells, span),
            *_left_out(real),
            "<h3>By family</h3>",
            _families(rng, span, options.families),
            "<h3>Several KPIs of one cell</h3>",
            _joint(synthetic, real),
            "<h3>In figures</h3>",
            _legend(real),
            '<div class="pair">',
            *curves(synthetic.series, real),
            "</div>",
            figure_table(synthetic.series, real),
        ]
    what = (
        "Left, blue: synthetic. Right, other colours: recorded cells; a colour is a KPI."
        if real_shown
        else "All of these cells are synthetic."
    )
    body = [INTRODUCTION.format(what=what), *parts]
    return PAGE.format(title="Gallery of synthetic cells", body="\n".join(body))


def shown_step(step_ms: int) -> str:
    """A step as people say it: `2 min`."""
    for unit_ms, unit in ((DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "min"), (SECOND_MS, "s")):
        if step_ms % unit_ms == 0:
            return f"{step_ms // unit_ms} {unit}"
    return f"{step_ms} ms"


def shown_span(span_ms: int) -> str:
    """A length of time in the greatest unit that it fills twice: `28 days`."""
    for unit_ms, unit in ((DAY_MS, "days"), (HOUR_MS, "hours"), (MINUTE_MS, "minutes")):
        if span_ms >= 2 * unit_ms:
            return f"{span_ms / unit_ms:,.3g} {unit}"
    return f"{span_ms / SECOND_MS:,.3g} seconds"


def _side_by_side(synthetic: SyntheticCells, real: RealCells, rows: int, span: Span) -> str:
    """Rows of two panels: a synthetic series and a real one, or two synthetic ones."""
    ours, theirs = synthetic.series.relative(), real.series.relative()
    chosen = _spread_over(real, rows)
    # Neighbours are KPIs of one cell and cells of one batch: far apart, they differ more.
    apart = np.linspace(0, len(ours) - 1, 2 * rows).astype(int)
    panels = []
    for pair in range(len(chosen) or rows):
        row = int(apart[2 * pair])
        if chosen:
            right = theirs[chosen[pair]]
            top = max(_top(ours[row]), _top(right))
            other = _real_panel(real, chosen[pair], right, top)
        else:
            second = int(apart[2 * pair + 1])
            top = max(_top(ours[row]), _top(ours[second]))
            other = panel(ours[second], top, SYNTHETIC_COLOUR, str(synthetic.kinds[second]))
        panels += [panel(ours[row], top, SYNTHETIC_COLOUR, str(synthetic.kinds[row])), other]
    note = f"{span.steps:,} samples each, which is {shown_span(span.steps * span.step_ms)}"
    if real.kpis and real.series.step_ms != span.step_ms:
        note += f"; the recorded ones have a sample every {shown_step(real.series.step_ms)}"
    return f'<p class="note">{note}</p><div class="pair">{"".join(panels)}</div>'


def _left_out(real: RealCells) -> list[str]:
    """What a reader misses: recorded cells of the section that are not shown, and why."""
    reasons = [f"{count:,} {reason}" for reason, count in real.left_out.items()]
    return (
        [f'<p class="note">Recorded cells not shown: {", ".join(reasons)}.</p>'] if reasons else []
    )


def _real_panel(
    real: RealCells, row: int, course: NDArray[np.float64], top: float | None = None
) -> str:
    name = real.kpis[row]
    colour = real_colour(real.names.index(name))
    return panel(course, _top(course) if top is None else top, colour, f"real: {name}")


def _families(rng: np.random.Generator, span: Span, each: int) -> str:
    """Activity of every family that the regime draws, with its share."""
    parts = []
    for family, share in MIXTURE[span.regime].items():
        # Some series are mixed with others of one draw; a wide draw keeps them from standing
        # side by side.
        activity = _over_mean(draw_family(rng, span, family, 8 * each)[:each], span)
        panels = [panel(course, _top(course), SYNTHETIC_COLOUR, "") for course in activity]
        parts.append(
            f"<p>{escape(str(family))} <span class='note'>{share:.0%}</span></p>"
            f'<div class="four">{"".join(panels)}</div>'
        )
    return "".join(parts)


def _joint(synthetic: SyntheticCells, real: RealCells) -> str:
    """The KPIs of a synthetic cell in one column, of a real or another synthetic one beside it."""
    ours, theirs = synthetic.series.relative(), real.series.relative()
    widest = sorted(synthetic.groups, key=len, reverse=True)
    shown = widest[: 1 if real.groups else 2]
    columns = [
        [
            panel(ours[row], _top(ours[row]), SYNTHETIC_COLOUR, str(synthetic.kinds[row]))
            for row in group
        ]
        for group in shown
    ]
    if real.groups:
        columns.append([_real_panel(real, row, theirs[row]) for row in real.groups[0][:MOST_KPIS]])
    inside = "".join(f"<div>{''.join(column)}</div>" for column in columns)
    return f'<div class="pair">{inside}</div>'


def _legend(real: RealCells) -> str:
    """Names of the colours."""
    keys = [f'<span class="key" style="color:{SYNTHETIC_COLOUR}">synthetic</span>']
    keys += [
        f'<span class="key" style="color:{real_colour(index)}">{escape(name)}</span>'
        for index, name in enumerate(real.names)
    ]
    return f"<p>{''.join(keys)}</p>"


def _spread_over(real: RealCells, rows: int) -> list[int]:
    """Rows of real pieces to show: the KPIs in turn, so that each is seen."""
    waiting = {name: [i for i, kpi in enumerate(real.kpis) if kpi == name] for name in real.names}
    chosen: list[int] = []
    while len(chosen) < rows and any(waiting.values()):
        for queue in waiting.values():
            if queue and len(chosen) < rows:
                chosen.append(queue.pop(0))
    return chosen


def _top(course: NDArray[np.float64]) -> float:
    """Upper edge of a panel: nearly the greatest value, so that one spike does not flatten all."""
    present = course[~np.isnan(course)]
    return float(np.quantile(present, 0.998)) * 1.05 + 1e-9 if len(present) else 1.0


def _over_mean(activity: NDArray[np.float32], span: Span) -> NDArray[np.float64]:
    return Series(activity, np.zeros(len(activity), dtype=np.int64), span.step_ms).relative()
