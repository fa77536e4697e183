"""The backtest as a page: what a manager asks first, then what an engineer needs.

One self-contained HTML file: headline, table by KPI, error over the horizon, coverage, and examples
of forecasts beside what came.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import plotly.graph_objects as go

from model.fan_chart import fan_chart, styled
from training.backtest import BacktestResult, Score

PALETTE = ("#1f5fbf", "#b8b8b8", "#8f8f8f", "#d9a441", "#7a9e7e", "#c97b63")

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


def write_report(result: BacktestResult, path: Path, title: str) -> None:
    """Write the page to `path`."""
    overall = result.overall()
    figures = [_error_by_lead(result, kpi) for kpi in _kpis(overall)]
    figures.append(_coverage_by_lead(result))
    figures += [
        fan_chart(example.window, example.forecast, 0, example.actual)
        for example in result.examples
    ]
    config = result.config
    body = [
        f'<p class="lead">{escape(_headline(overall))}</p>',
        f'<p class="note">{result.cells} cells, {result.origins} origins, horizon of '
        f"{config.horizon} steps. WQL, WAPE and MASE: lower is better. Coverage is the share of "
        f"values between the {config.levels[0]:g} and {config.levels[-1]:g} quantiles; it should "
        f"be near {config.levels[-1] - config.levels[0]:.0%}.</p>",
        _table(overall),
        "<h2>Error and coverage over the horizon</h2>",
        *(
            figure.to_html(full_html=False, include_plotlyjs=(index == 0))
            for index, figure in enumerate(figures)
        ),
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
        else:
            sentences.append(f"{kpi}: {best.model}.")
    return " ".join(sentences)


def _table(overall: Sequence[Score]) -> str:
    rows = []
    seen: set[str] = set()
    for line in overall:
        best = ' class="best"' if line.kpi not in seen else ""
        seen.add(line.kpi)
        scores = line.accuracy
        rows.append(
            f"<tr{best}><td>{escape(line.kpi)}</td><td>{escape(line.model)}</td>"
            f"<td>{scores.wql:.3f}</td><td>{scores.mase:.3f}</td><td>{scores.wape:.1%}</td>"
            f"<td>{scores.coverage:.1%}</td><td>{scores.mean_width:,.4g}</td>"
            f"<td>{scores.targets:,}</td></tr>"
        )
    head = "<tr><th>KPI</th><th>model</th><th>WQL</th><th>MASE</th><th>WAPE</th>"
    head += "<th>coverage</th><th>width</th><th>values</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def _error_by_lead(result: BacktestResult, kpi: str) -> go.Figure:
    figure = go.Figure()
    for index, model in enumerate(_models(result.scores)):
        lines = _lines(result, model, kpi)
        figure.add_scatter(
            x=[(line.first_lead + line.last_lead) / 2 for line in lines],
            y=[line.accuracy.wql for line in lines],
            name=model,
            mode="lines+markers",
            line={"color": PALETTE[index % len(PALETTE)], "width": 3 if index == 0 else 1.5},
        )
    return styled(figure, f"{kpi}: weighted quantile loss by lead", "lead in steps", "WQL")


def _coverage_by_lead(result: BacktestResult) -> go.Figure:
    figure = go.Figure()
    model = _models(result.scores)[0]
    for index, kpi in enumerate(_kpis(result.scores)):
        lines = _lines(result, model, kpi)
        figure.add_scatter(
            x=[(line.first_lead + line.last_lead) / 2 for line in lines],
            y=[line.accuracy.coverage for line in lines],
            name=kpi,
            mode="lines+markers",
            line={"color": PALETTE[index % len(PALETTE)]},
        )
    nominal = result.config.levels[-1] - result.config.levels[0]
    figure.add_hline(y=nominal, line_dash="dot", annotation_text=f"nominal {nominal:.0%}")
    figure.update_yaxes(range=[0, 1], tickformat=".0%")
    return styled(figure, f"Coverage of {model} by lead", "lead in steps", "coverage")


def _lines(result: BacktestResult, model: str, kpi: str) -> list[Score]:
    lines = [line for line in result.scores if (line.model, line.kpi) == (model, kpi)]
    return sorted(lines, key=lambda line: line.first_lead)


def _kpis(scores: Sequence[Score]) -> list[str]:
    return list(dict.fromkeys(line.kpi for line in scores))


def _models(scores: Sequence[Score]) -> list[str]:
    return list(dict.fromkeys(line.model for line in scores))
