"""The figures of the placement, and the picture that is drawn of them."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from benchmarks.plan import ANSWER, IMAGE, NAME, figures, recorded
from benchmarks.tables import renewed
from service.plan.drawing import draw
from tests.service.plan.makers import made_plan


@pytest.fixture
def results(tmp_path):
    found = [asdict(figure) for figure in figures(made_plan())]
    (tmp_path / f"{NAME}.json").write_text(json.dumps({"results": found}), encoding="utf-8")
    return tmp_path


def test_the_plan_is_kept_whole_beside_its_figures(results):
    assert recorded(results) == made_plan()


def test_figures_are_those_of_the_plan():
    found = {figure.id: figure for figure in figures(made_plan())}
    assert found["plan.call.full"].value == 6.0
    assert found["plan.call.full"].detail["32_cells"] == "130 / 156"
    assert found["plan.call.full"].detail["ms_a_call"] == 2.0
    assert found["plan.largest_request.full"].detail["100_ms"] == 19
    assert found["plan.under_load.full"].detail["100_ms"] == 230
    assert found["plan.served.full"].detail["100_ms"] == "6,905 / 103,580"
    assert found["plan.context.384"].detail["cells_in_100_ms"] >= 32
    assert found["plan.memory.cell_in_a_call"].value == 1.0
    assert not any(figure.target for figure in found.values())


def test_tables_show_them_without_a_judgement(results):
    text = "<!-- figures plan: plan.call.json | p99_ms 32_cells -->\n<!-- end -->"
    assert renewed(text, results).splitlines()[2] == "| figure | measured | p99 ms | 32 cells |"


def test_the_picture_is_that_of_the_results(tmp_path):
    pytest.importorskip("matplotlib", reason="the benchmark extra draws it")
    draw(recorded(), tmp_path / "plan.svg")
    drawn = (tmp_path / "plan.svg").read_bytes()
    assert IMAGE.read_bytes() == drawn, "call benchmarks.plan.draw_recorded"
    assert ANSWER.encode() not in drawn
