"""The backtest as a page: what a manager asks first, then what an engineer needs.

One self-contained HTML file: headline, table by KPI, error over the horizon, coverage, and examples
of forecasts beside what came.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import plotly.graph_objects as go

from kpi.catalogue import Catalogue
from model.accuracy import shown
from model.fan_chart import fan_chart, shown_unit, styled, to_html
from training.backtest import BacktestResult, Score

PALETTE = ("#1f5fbf", "#d9822b", "#3a9d6e", "#8e5bb5", "#c0504d", "#17a2b8", "#7a6f2b", "#6b7480")
DASHES = ("solid", "dash", "dot")

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #1c2430; max-width: 68rem; margin: 2rem auto;
  padding: 0 1rem; }}
table {{ border-collapse: collapse; width: 100%; margin: 1rem 0 2rem; }}
th, td {{ text-align: right; padding: .35rem .7rem; border-bottom: 1px solid #e3e6ea; }}
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) {{ text-align: left; }}
tr.best td {{ font-weight: 600; }}
.lead {{ font-size: 1.15rem; }}
.note {{ color: #5a6675; }}
</style></head><body>
<h1>{title}</h1>
{body}
</body></html>
"""


def write_report(result: BacktestResult, path: Path, title: str, catalogue: Catalogue) -> None:
    """Write the page to `path`; the catalogue knows the units."""
    overall = result.overall()
    config = result.config
    first = _models(result.scores)[0]
    by_lead = [line for line in result.scores if line.model == first]
    steps = ", ".join(f"{seconds:g}" for seconds in result.step_seconds)
    figures = [_error_by_lead(result, kpi) for kpi in _kpis(overall)]
    figures.append(_coverage_by_lead(result))
    for index, example in enumerate(result.examples):
        row = index % len(example.window.kpis)
        unit = catalogue.resolve(example.window.kpis[row]).unit
        figures.append(
            fan_chart(example.window, example.forecast, row, unit=unit, actual=example.actual)
        )
    body = [
        f'<p class="lead">{escape(_headline(overall))}</p>',
        f'<p class="note">{result.cells} cells, {result.origins} origins, horizon of '
        f"{config.horizon} steps of {steps} s. WQL, WAPE and MASE: lower is better. Coverage is "
        f"the share of values between the {config.levels[0]:g} and {config.levels[-1]:g} "
        f"quantiles; it should be near {_nominal(result):.0%}. Width is the mean distance between "
        "them.</p>",
        _table(overall, catalogue, by_model=True),
        f"<h2>{escape(first)} by steps ahead</h2>",
        _table(by_lead, catalogue, by_model=False),
        "<h2>Over the horizon, and examples</h2>",
        to_html(figures),
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PAGE.format(title=escape(title), body="\n".join(body)), encoding="utf-8")


def _headline(overall: Sequence[Score]) -> str:
    """One sentence: on how many KPIs the best model is which, and by how much."""
    sentences = []
    for kpi in _kpis(overall):
        lines = [line for line in overall if line.kpi == kpi]
        best = lines[0]
        if len(lines) > 1 and lines[1].accuracy.wql > 0:
            gain = 1 - best.accuracy.wql / lines[1].accuracy.wql
            sentences.append(
                f"{kpi}: {best.model} is best, with {gain:.0%} less error than {lines[1].model}."
            )
        elif len(lines) > 1:
            sentences.append(f"{kpi}: all errors or all values are zero, so none is better.")
    return " ".join(sentences)


def _table(lines: Sequence[Score], catalogue: Catalogue, *, by_model: bool) -> str:
    """One line a KPI and model, with the first of each KPI marked, or one a KPI and leads."""
    rows = []
    seen: set[str] = set()
    for line in lines:
        best = ' class="best"' if by_model and line.kpi not in seen else ""
        seen.add(line.kpi)
        scores = line.accuracy
        second = line.model if by_model else line.leads
        width = f"{shown(scores.mean_width, ',.4g')} {shown_unit(catalogue.resolve(line.kpi).unit)}"
        rows.append(
            f"<tr{best}><td>{escape(line.kpi)}</td><td>{escape(second)}</td>"
            f"<td>{shown(scores.wql, '.3f')}</td><td>{shown(scores.mase, '.3f')}</td>"
            f"<td>{shown(scores.wape, '.1%')}</td><td>{shown(scores.coverage, '.1%')}</td>"
            f"<td>{escape(width)}</td>"
            f"<td>{scores.targets:,}</td></tr>"
        )
    head = f"<tr><th>KPI</th><th>{'model' if by_model else 'steps ahead'}</th><th>WQL</th>"
    head += "<th>MASE</th><th>WAPE</th><th>coverage</th><th>width</th><th>values</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def _error_by_lead(result: BacktestResult, kpi: str) -> go.Figure:
    figure = go.Figure()
    for index, model in enumerate(_models(result.scores)):
        lines = _lines(result, model, kpi)
        errors = [line.accuracy.wql for line in lines]
        _add_line(figure, model, lines, errors, index, width=3 if index == 0 else 1.5)
    figure.update_yaxes(rangemode="tozero")
    return styled(figure, f"{kpi}: weighted quantile loss", "steps ahead", "WQL")


def _coverage_by_lead(result: BacktestResult) -> go.Figure:
    figure = go.Figure()
    model = _models(result.scores)[0]
    for index, kpi in enumerate(_kpis(result.scores)):
        lines = _lines(result, model, kpi)
        _add_line(figure, kpi, lines, [line.accuracy.coverage for line in lines], index, width=2)
    nominal = _nominal(result)
    figure.add_hline(
        y=nominal,
        line_dash="dot",
        annotation_text=f"nominal {nominal:.0%}",
        annotation_position="bottom right",
    )
    figure.update_yaxes(range=[0, 1.02], tickformat=".0%")
    return styled(figure, f"Coverage of {model}", "steps ahead", "coverage")


def _add_line(
    figure: go.Figure,
    name: str,
    lines: Sequence[Score],
    values: Sequence[float],
    index: int,
    *,
    width: float,
) -> None:
    """Draw `values` over the middle of each line's leads in the colour and dash of `index`."""
    figure.add_scatter(
        x=[(line.first_lead + line.last_lead) / 2 for line in lines],
        y=values,
        name=name,
        mode="lines+markers",
        line={
            "color": PALETTE[index % len(PALETTE)],
            "dash": DASHES[index // len(PALETTE) % len(DASHES)],
            "width": width,
        },
    )


def _nominal(result: BacktestResult) -> float:
    """Coverage that the outermost levels promise."""
    return result.config.levels[-1] - result.config.levels[0]


def _lines(result: BacktestResult, model: str, kpi: str) -> list[Score]:
    lines = [line for line in result.scores if (line.model, line.kpi) == (model, kpi)]
    return sorted(lines, key=lambda line: line.first_lead)


def _kpis(scores: Sequence[Score]) -> list[str]:
    return list(dict.fromkeys(line.kpi for line in scores))


def _models(scores: Sequence[Score]) -> list[str]:
    return list(dict.fromkeys(line.model for line in scores))
