"""The charts of the page, and how they are put into it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from kpi.catalogue import Catalogue
from model.fan_chart import fan_chart, plain_text, shown_unit, styled
from training.backtest import BacktestResult, HourlyErrors, Score
from training.report.words import UNCALIBRATED, steps_word

OWN = "#1f5fbf"
OTHERS = ("#d9822b", "#3a9d6e", "#8e5bb5", "#c0504d", "#17a2b8", "#7a6f2b", "#6b7480")
DASHES = ("solid", "dash", "dot")
PALE = "rgba(31,95,191,.35)"
CONFIG = {"displayModeBar": False, "responsive": True}
HOURS = list(range(24))


def library() -> str:
    """The script that draws the charts; a page needs it once, before them."""
    return f'<script type="text/javascript">{get_plotlyjs()}</script>'


def embedded(figures: Iterable[go.Figure]) -> str:
    """Charts for a page that has the library: side by side where there is room."""
    parts = [
        figure.to_html(full_html=False, include_plotlyjs=False, config=CONFIG) for figure in figures
    ]
    return f'<div class="charts">{"".join(parts)}</div>'


def error_by_lead(result: BacktestResult, kpi: str) -> go.Figure:
    """WQL of every model over the horizon."""
    figure = go.Figure()
    for index, model in enumerate(result.models):
        lines = result.by_lead(model, kpi)
        _add_line(figure, model, lines, [line.accuracy.wql for line in lines], index)
    figure.update_yaxes(rangemode="tozero")
    return styled(figure, "Error by steps ahead (lower is better)", _ahead(result), "WQL")


def coverage_by_lead(result: BacktestResult, kpi: str) -> go.Figure:
    """Coverage of the model under test over the horizon, and without calibration if known."""
    figure = go.Figure()
    nominal = result.config.nominal_coverage
    for index, model in enumerate((result.model, result.model + UNCALIBRATED)):
        lines = result.by_lead(model, kpi)
        if lines:
            _add_line(figure, model, lines, [line.accuracy.coverage for line in lines], index)
    figure.add_hline(
        y=nominal,
        line_dash="dot",
        annotation_text=f"promised: {nominal:.0%}",
        annotation_position="bottom right",
    )
    figure.update_yaxes(range=[0, 1.02], tickformat=".0%")
    figure.update_layout(showlegend=True)
    return styled(figure, "Share of values inside the band", _ahead(result), "coverage")


def errors_by_hour(errors: HourlyErrors, unit: str) -> go.Figure:
    """Size and direction of the errors of the model under test over the local day."""
    figure = go.Figure()
    figure.add_bar(
        x=HOURS,
        y=_plain(errors.mean_absolute_error.tolist()),
        name="mean absolute error",
        marker={"color": PALE},
    )
    figure.add_scatter(
        x=HOURS,
        y=_plain(errors.bias.tolist()),
        name="mean error (above zero: forecast too low)",
        mode="lines+markers",
        line={"color": OTHERS[0], "width": 2},
    )
    figure.update_xaxes(dtick=3, range=[-0.6, 23.6])
    axis = ", ".join(part for part in ("error", shown_unit(unit)) if part)
    return styled(figure, "Errors by hour of the local day", "hour of the day", axis)


def examples(result: BacktestResult, catalogue: Catalogue) -> list[go.Figure]:
    """Forecasts beside what came; every KPI in turn."""
    figures = []
    for index, example in enumerate(result.examples):
        row = index % len(example.window.kpis)
        unit = catalogue.resolve(example.window.kpis[row]).unit
        figures.append(
            fan_chart(example.window, example.forecast, row, unit=unit, actual=example.actual)
        )
    return figures


def _add_line(
    figure: go.Figure, name: str, lines: Sequence[Score], values: Sequence[float], index: int
) -> None:
    """Draw `values` over the middle of each line's leads; number 0 is the model under test."""
    colour = OWN if index == 0 else OTHERS[(index - 1) % len(OTHERS)]
    dash = DASHES[0] if index == 0 else DASHES[(index - 1) // len(OTHERS) % len(DASHES)]
    figure.add_scatter(
        x=[(line.first_lead + line.last_lead) / 2 for line in lines],
        y=_plain(values),
        name=plain_text(name),
        mode="lines+markers",
        line={"color": colour, "dash": dash, "width": 3.5 if index == 0 else 1.5},
        marker={"size": 7 if index == 0 else 4},
    )


def _ahead(result: BacktestResult) -> str:
    return f"{steps_word(result)} ahead"


def _plain(values: Sequence[float]) -> list[float | None]:
    """Numbers for a chart; NaN is a gap."""
    return [None if value != value else float(value) for value in values]
