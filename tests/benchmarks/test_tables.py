"""Tables of figures in the documentation are those of the results that are checked in."""

from __future__ import annotations

import json

import pytest

from benchmarks.tables import ROOT, pages, renewed


@pytest.fixture
def results(tmp_path):
    figures = [
        {"id": "x.fast", "value": 2.5, "unit": "x", "target": 2.0, "met": True, "detail": {"n": 3}},
        {"id": "x.slow", "value": 12.345, "unit": "ms", "target": 9, "met": False, "detail": {}},
        {"id": "y", "value": 0.8, "unit": "share", "target": 0.8, "met": None, "detail": {}},
    ]
    figures[2]["detail"] = {"inside": "0.7 to 0.9"}
    (tmp_path / "speed.json").write_text(json.dumps({"results": figures}), encoding="utf-8")
    return tmp_path


def test_a_table_shows_the_named_figures_in_the_order_of_their_names(results):
    text = "before\n<!-- figures speed: y x.* | n -->\nstale\n<!-- end -->\nafter\n"
    expected = """before
<!-- figures speed: y x.* | n -->

| figure | measured | n | asked | met |
| --- | --- | --- | --- | --- |
| `y` | 0.800 |  | 0.7 to 0.9 |  |
| `x.fast` | 2.500 x | 3 | 2.000 | yes |
| `x.slow` | 12.35 ms |  | 9 | **no** |

<!-- end -->
after
"""
    assert renewed(text, results) == expected
    assert renewed(expected, results) == expected


def test_a_table_of_figures_that_nobody_asked_for_judges_none(tmp_path):
    figure = {"id": "x", "value": 2.5, "unit": "ms", "target": None, "met": None}
    record = {"results": [figure | {"detail": {"n": 3}}]}
    (tmp_path / "plan.json").write_text(json.dumps(record), encoding="utf-8")
    text = "<!-- figures plan: x | n -->\n<!-- end -->"
    assert renewed(text, tmp_path).splitlines()[2:5] == [
        "| figure | measured | n |",
        "| --- | --- | --- |",
        "| `x` | 2.500 ms | 3 |",
    ]


def test_text_outside_of_tables_stays(results):
    assert renewed("no table\n<!-- a comment -->\n", results) == "no table\n<!-- a comment -->\n"


@pytest.mark.parametrize("what", ["speed: z", "speed: x.* z.*", "sound: y"])
def test_figures_that_were_not_measured_are_named(results, what):
    with pytest.raises(KeyError, match="expected"):
        renewed(f"<!-- figures {what} -->\n<!-- end -->", results)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_page_shows_what_was_measured(page):
    text = page.read_text(encoding="utf-8")
    assert renewed(text) == text, "run `python -m benchmarks.tables`"
