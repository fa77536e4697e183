"""The report is one file that says first who was better."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from model.baseline import SeasonalBaseline
from training.backtest import BacktestConfig, backtest
from training.report import write_report
from training.report.page import SHOWN_KPIS


@pytest.fixture
def page(make_window, catalogue, tmp_path):
    windows = [make_window(seed) for seed in range(2)]
    predictors = [SeasonalBaseline(catalogue), SeasonalBaseline(catalogue, ("last value",))]
    result = backtest(predictors, windows, BacktestConfig(horizon=12))
    path = tmp_path / "reports" / "backtest.html"
    write_report(result, path, "Backtest of <mine>", catalogue)
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


def test_the_answer_comes_first_in_plain_words(page):
    first = page.split('<p class="lead">')[1].split("</p>")[0]
    assert "RRU.PrbTotDl: up to 12 hours ahead, seasonal baseline was off by" in first
    assert "less error than the best of the others (last value)." in first
    assert "Of 100 hours the 80 % band held" in page.split('<p class="lead">')[2]


def test_scores_and_charts_are_there(page):
    assert "<th>WQL</th>" in page
    assert "<th>relative width</th>" in page
    assert page.count('class="plotly-graph-div"') == 3 + 6


def test_the_model_under_test_is_marked_once_a_kpi_and_in_the_times(page):
    assert page.count("class=own") == 2


def test_every_score_is_told_by_steps_ahead(page):
    table = page.split("by steps ahead</summary>")[1].split("</table>")[0]
    for column in ("WQL", "MASE", "WAPE", "coverage"):
        assert f"<th>{column}</th>" in table
    rows = [row.split("</td>")[0].rpartition(">")[2] for row in table.split("<tr>")[2:]]
    assert (rows[0], rows[-1].split()[-1]) == ("1", "12")


def test_the_worst_cells_are_listed(page):
    table = page.split("Where most of the error is</h3>")[1].split("</table>")[0]
    assert "cell=0" in table
    assert "cell=1" in table


def test_the_page_tells_step_and_unit(page):
    assert "12 steps of 3600 s" in page
    assert " %</td>" in page


def test_examples_show_every_kpi_in_turn(make_window, catalogue, tmp_path):
    windows = [make_window(0, kpis=("RRU.PrbTotDl", "RRU.PrbTotUl"))]
    result = backtest([SeasonalBaseline(catalogue)], windows, BacktestConfig(horizon=12))
    path = tmp_path / "backtest.html"
    write_report(result, path, "Backtest", catalogue)
    charts = path.read_text(encoding="utf-8")
    for kpi in ("RRU.PrbTotDl", "RRU.PrbTotUl"):
        assert charts.count(rf"{kpi}\u003cbr\u003e\u003csup\u003ecell=0\u003c") == 3


def test_a_kpi_of_zeros_has_no_best_forecaster(make_window, catalogue, tmp_path):
    window = make_window(0)
    idle = replace(window, values=np.zeros_like(window.values))
    predictors = [SeasonalBaseline(catalogue), SeasonalBaseline(catalogue, ("last value",))]
    result = backtest(predictors, [idle], BacktestConfig(horizon=12))
    path = tmp_path / "backtest.html"
    write_report(result, path, "Backtest", catalogue)
    body = path.read_text(encoding="utf-8")
    assert "all values were zero or missing" in body
    assert "<td>-</td>" in body
    assert "<td>nan" not in body


def test_axes_say_what_a_step_is(page):
    assert page.count('"text":"hours ahead"') == 2
    assert '"text":"error, %"' in page


def test_a_name_cannot_bring_markup_into_the_page(make_window, catalogue, tmp_path):
    evil = "</script><img src=x onerror=alert(1)>"
    windows = [replace(make_window(seed, kpis=(evil,)), cell=f"{evil}{seed}") for seed in range(2)]
    windows.append(replace(make_window(2, steps=20), cell=evil))
    predictors = [Quitter(catalogue), SeasonalBaseline(catalogue, ("last value",))]
    result = backtest(predictors, windows, BacktestConfig(horizon=12))
    path = tmp_path / "backtest.html"
    write_report(result, path, evil, catalogue)
    body = path.read_text(encoding="utf-8")
    outline = Outline()
    outline.feed(body)
    assert "img" not in outline.tags


def test_a_page_of_very_many_kpis_has_charts_of_some(make_window, catalogue, tmp_path):
    kpis = tuple(f"kpi{number:03}" for number in range(SHOWN_KPIS + 2))
    predictors = [SeasonalBaseline(catalogue, ("last value",)), SeasonalBaseline(catalogue)]
    config = BacktestConfig(horizon=12, max_origins=2)
    result = backtest(predictors, [make_window(0, steps=120, kpis=kpis)], config)
    path = tmp_path / "backtest.html"
    write_report(result, path, "Backtest", catalogue)
    body = path.read_text(encoding="utf-8")
    assert body.count("<h3>") + body.count("<details>") == SHOWN_KPIS
    assert f"Charts of the first {SHOWN_KPIS} of {SHOWN_KPIS + 2} KPIs" in body
    assert f'<td class="text">{kpis[-1]}</td>' in body


def test_names_are_escaped(page):
    assert "Backtest of &lt;mine&gt;" in page
    assert "<mine>" not in page


class Quitter(SeasonalBaseline):
    """Says that it gave up, and what is to be known of it."""

    note = "never <finishes>"
    fallbacks = 0

    def predict(self, windows, horizon, levels):
        self.fallbacks += len(windows)
        return super().predict(windows, horizon, levels)


def test_notes_failures_and_what_was_not_tested_are_told(make_window, catalogue, tmp_path):
    windows = [make_window(0), make_window(1, steps=20)]
    predictors = [SeasonalBaseline(catalogue), Quitter(catalogue, ("last value",))]
    result = backtest(predictors, windows, BacktestConfig(horizon=12))
    path = tmp_path / "backtest.html"
    write_report(result, path, "Backtest", catalogue)
    body = path.read_text(encoding="utf-8")
    assert "<small>never &lt;finishes&gt;</small>" in body
    assert "last value: never" not in body
    assert f"{result.origins} of {result.origins}</td>" in body
    assert "<li>cell=1: 20 samples of 3600 s; 44 needed</li>" in body


def test_what_has_to_be_known_of_the_model_under_test_stands_at_the_top(
    make_window, catalogue, tmp_path
):
    result = backtest([Quitter(catalogue)], [make_window(0)], BacktestConfig(horizon=12))
    path = tmp_path / "backtest.html"
    write_report(result, path, "Backtest", catalogue)
    top = path.read_text(encoding="utf-8").split("<h2>")[0]
    assert "seasonal baseline: never &lt;finishes&gt;.</p>" in top


def test_many_kpis_get_a_table_of_answers(make_window, catalogue, tmp_path):
    kpis = ("RRU.PrbTotDl", "RRU.PrbTotUl", "DRB.UEThpDl", "DRB.UEThpUl")
    result = backtest(
        [SeasonalBaseline(catalogue), SeasonalBaseline(catalogue, ("last value",))],
        [make_window(0, kpis=kpis)],
        BacktestConfig(horizon=12),
    )
    path = tmp_path / "backtest.html"
    write_report(result, path, "Backtest", catalogue)
    body = path.read_text(encoding="utf-8")
    assert "was the best forecaster of 4 of 4 KPIs." in body
    table = body.split("does the band keep its word?")[1].split("</table>")[0]
    assert table.count("<tr>") == 4
