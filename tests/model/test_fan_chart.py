"""The chart shows what was measured, what is expected and what came."""

from __future__ import annotations

from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from model.baseline import SeasonalBaseline
from model.fan_chart import fan_chart, to_html


@pytest.fixture
def pair(make_window, catalogue):
    window = make_window(steps=300)
    (forecast,) = SeasonalBaseline(catalogue).predict([window], 24, (0.1, 0.5, 0.9))
    return window, forecast


def traces(figure):
    return {trace.name: trace for trace in figure.data if trace.name}


def test_band_median_and_history_are_drawn(pair):
    window, forecast = pair
    found = traces(fan_chart(window, forecast, 0))
    assert set(found) == {"quantiles 0.1 to 0.9", "median", "measured"}
    np.testing.assert_allclose(found["median"].y, forecast.values[0, :, 1])
    assert len(found["measured"].y) == 24 * 6


def test_time_runs_on_from_history_to_forecast(pair):
    window, forecast = pair
    found = traces(fan_chart(window, forecast, 0))
    assert found["measured"].x[-1] == "2026-01-17T11:00:00+00:00"
    assert found["median"].x[0] == "2026-01-17T12:00:00+00:00"


def test_what_came_continues_the_measured_line(pair):
    window, forecast = pair
    found = traces(fan_chart(window, forecast, 0, actual=np.full((1, 24), 7.0, np.float32)))
    assert len(found["measured"].y) == 24 * 7
    assert found["measured"].y[-1] == 7.0


def test_missing_samples_are_gaps(pair):
    window, forecast = pair
    window.values[0, -1] = np.nan
    assert traces(fan_chart(window, forecast, 0))["measured"].y[-1] is None


def test_an_empty_window_can_be_drawn(make_window, catalogue):
    window = make_window(steps=0, kpis=("Percent",))
    (forecast,) = SeasonalBaseline(catalogue).predict([window], 3, (0.1, 0.5, 0.9))
    assert len(traces(fan_chart(window, forecast, 0))["median"].y) == 3


def test_without_a_median_the_nearest_level_is_named(make_window, catalogue):
    window = make_window()
    (forecast,) = SeasonalBaseline(catalogue).predict([window], 3, (0.1, 0.6))
    assert "quantile 0.6" in traces(fan_chart(window, forecast, 0))


def test_a_long_name_is_cut_at_its_front_and_is_no_markup(pair):
    window, forecast = pair
    long = replace(window, cell=f"SubNetwork={'x' * 80},<b>NRCellDU</b>=3 & more")
    title = fan_chart(long, forecast, 0).layout.title.text
    kpi, _, cell = title.partition("<br>")
    assert kpi == window.kpis[0]
    assert cell.startswith("<sup>…x")
    assert cell.endswith("x,&lt;b&gt;NRCellDU&lt;/b&gt;=3 &amp; more</sup>")
    assert len(unescape(cell)) == len("<sup></sup>") + 64


@pytest.mark.parametrize(("unit", "shown"), [("kbit", "kbit"), ("1", "")])
def test_axes_say_time_and_unit(pair, unit, shown):
    window, forecast = pair
    layout = fan_chart(window, forecast, 0, unit=unit).layout
    assert layout.xaxis.title.text == "time (UTC)"
    assert layout.yaxis.title.text == shown


def test_only_the_first_chart_of_a_page_brings_the_library(pair):
    window, forecast = pair
    chart = fan_chart(window, forecast, 0)
    page = to_html([chart, chart])
    assert page.count('class="plotly-graph-div"') == 2
    assert len(page) < 1.5 * len(to_html([chart]))
