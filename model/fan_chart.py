"""A forecast as a picture: history, median, the band between the outer quantiles, what came.

Reports of backtests and offline forecasts draw the same chart. Plotly is only loaded here, when a
chart is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kpi.window import KpiWindow
from model.predictor import Forecast

if TYPE_CHECKING:
    import plotly.graph_objects as go

BLUE = "#1f5fbf"
BAND = "rgba(31,95,191,.2)"
INK = "#1c2430"
HISTORY_HORIZONS = 6
LEAST_HISTORY_STEPS = 96
MOST_TITLE_LETTERS = 64
MOST_DATES = 6
"""More on an axis would be tilted and run into the legend."""


def fan_chart(
    window: KpiWindow,
    forecast: Forecast,
    row: int,
    *,
    unit: str = "",
    actual: NDArray[np.float32] | None = None,
) -> go.Figure:
    """Chart of one KPI.

    Args:
        window: What the forecast was made from; its end is shown.
        forecast: The forecast, K KPIs.
        row: Which of the KPIs.
        unit: Its unit, for the axis.
        actual: (K, H) what came, where it is known.
    """
    import plotly.graph_objects as go

    horizon = forecast.values.shape[1]
    shown = min(window.steps, max(LEAST_HISTORY_STEPS, HISTORY_HORIZONS * horizon))
    past = _times(window.end_ms - shown * window.step_ms, window.step_ms, shown)
    coming = _times(forecast.start_ms, forecast.step_ms, horizon)
    quantiles = forecast.values[row]  # (H, Q)
    middle = min(range(len(forecast.levels)), key=lambda i: abs(forecast.levels[i] - 0.5))
    figure = go.Figure()
    figure.add_scatter(
        x=coming, y=_plain(quantiles[:, -1]), line={"width": 0}, showlegend=False, hoverinfo="skip"
    )
    figure.add_scatter(
        x=coming,
        y=_plain(quantiles[:, 0]),
        fill="tonexty",
        fillcolor=BAND,
        line={"width": 0},
        name=f"quantiles {forecast.levels[0]:g} to {forecast.levels[-1]:g}",
    )
    figure.add_scatter(
        x=coming,
        y=_plain(quantiles[:, middle]),
        line={"color": BLUE, "width": 2},
        name="median"
        if forecast.levels[middle] == 0.5
        else f"quantile {forecast.levels[middle]:g}",
    )
    seen = window.values[row, -shown:] if shown else window.values[row, :0]
    times = past
    if actual is not None:
        seen, times = np.concatenate([seen, actual[row]]), past + coming
    figure.add_scatter(x=times, y=_plain(seen), line={"color": INK, "width": 1.5}, name="measured")
    figure.update_xaxes(tickangle=0, nticks=MOST_DATES)
    title = f"{plain_text(window.kpis[row])}<br><sup>{plain_text(_end_of(window.cell))}</sup>"
    return styled(figure, title, "time (UTC)", shown_unit(unit))


def plain_text(text: str) -> str:
    """A name for a title or legend of a chart, where `<b>` and the like would be markup."""
    return escape(text, quote=False)


def shown_unit(unit: str) -> str:
    """A unit as people read it: nothing for a pure number, whose unit is 1."""
    return "" if unit == "1" else unit


def to_html(figures: Iterable[go.Figure]) -> str:
    """Charts for a page, one below the other; the first brings the library that draws them."""
    parts: list[str] = [
        figure.to_html(
            full_html=False, include_plotlyjs=(index == 0), config={"displaylogo": False}
        )
        for index, figure in enumerate(figures)
    ]
    return "\n".join(parts)


def styled(figure: go.Figure, title: str, x_title: str = "", y_title: str = "") -> go.Figure:
    """The look that all charts share."""
    return figure.update_layout(
        template="plotly_white",
        title={"text": title, "font": {"size": 15}},
        height=360,
        margin={"l": 70, "r": 20, "t": 50, "b": 40},
        xaxis_title=x_title,
        yaxis_title=y_title,
        legend={"orientation": "h", "y": -0.25},
    )


def _end_of(name: str) -> str:
    """The end of a name too long for a title: that is where names of cells differ."""
    return name if len(name) <= MOST_TITLE_LETTERS else f"…{name[1 - MOST_TITLE_LETTERS :]}"


def _plain(values: NDArray[np.float32]) -> list[float | None]:
    """Numbers for a chart; NaN is a gap."""
    return [None if np.isnan(value) else float(value) for value in values]


def _times(start_ms: int, step_ms: int, count: int) -> list[str]:
    return [
        datetime.fromtimestamp((start_ms + i * step_ms) / 1000, UTC).isoformat()
        for i in range(count)
    ]
