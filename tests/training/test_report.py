"""The report is one file that says first who was better."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from model.baseline import SeasonalBaseline
from training.backtest import BacktestConfig, backtest
from training.report import write_report


@pytest.fixture
def page(make_window, catalogue, tmp_path):
    windows = [make_window(seed) for seed in range(2)]
    predictors = [SeasonalBaseline(catalogue), SeasonalBaseline(catalogue, ("last value",))]
    result = backtest(predictors, windows, BacktestConfig(horizon=12))
    path = tmp_path / "reports" / "backtest.html"
    write_report(result, path, "Backtest of <mine>")
    return path.read_text(encoding="utf-8")


class Outline(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags: list[str] = []
        self.sources: list[str | None] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.sources += [value for name, value in attrs if name in ("src", "href")]


def test_the_page_needs_nothing_from_outside(page):
    outline = Outline()
    outline.feed(page)
    assert outline.sources == []
    assert page.count("plotly.js v") <= 1


def test_the_headline_names_the_best_forecaster_and_its_lead(page):
    assert "RRU.PrbTotDl: seasonal baseline is best, with" in page


def test_scores_and_charts_are_there(page):
    assert "<th>WQL</th>" in page
    assert page.count('class="plotly-graph-div"') == 2 + 6


def test_names_are_escaped(page):
    assert "Backtest of &lt;mine&gt;" in page
    assert "<mine>" not in page
