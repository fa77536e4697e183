"""Pictures of a plan: the same panels by either library, the same bytes for the same plan."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from service.plan.drawing import DrawingError, draw, panels
from tests.service.plan.makers import made_plan


def test_panels_show_what_was_measured_and_what_follows():
    calls, requests, contexts = panels(made_plan())
    assert [line.name for line in calls.lines][:2] == ["full, p99", "full, p50"]
    assert calls.lines[1].y[0] == 6.0
    assert calls.bound == ("near-rt, 100 ms", 100.0)
    assert requests.lines[0].x == [10.0, 100.0, 5_000.0]
    assert requests.lines[0].y[1] == 19
    assert [line.name for line in contexts.lines] == ["one cell", "32 cells"]
    assert contexts.lines[0].x == [192, 384, 768]


def test_what_fits_nowhere_is_not_on_a_logarithmic_axis():
    _, requests, _ = panels(made_plan(slower=1_000.0))
    assert requests.lines[0].x == [5_000.0][:0]
    assert requests.lines[2].x == [10.0, 100.0, 5_000.0]


def test_a_page_has_the_charts_and_the_verdict(tmp_path):
    draw(made_plan(), tmp_path / "new" / "plan.html")
    page = (tmp_path / "new" / "plan.html").read_text(encoding="utf-8")
    assert page.count('class="plotly-graph-div"') == 3
    assert "near-rt, 100 ms: fits." in page


def test_the_same_plan_gives_the_same_picture_and_another_one_another(tmp_path):
    pytest.importorskip("matplotlib", reason="the benchmark extra draws it")
    pictures = []
    for name, slower in (("one", 1.0), ("same", 1.0), ("other", 2.0)):
        draw(made_plan(slower), tmp_path / f"{name}.svg")
        pictures.append((tmp_path / f"{name}.svg").read_bytes())
    assert pictures[0] == pictures[1] != pictures[2]


def test_a_picture_of_pixels_is_one(tmp_path):
    pytest.importorskip("matplotlib", reason="the benchmark extra draws it")
    draw(made_plan(), tmp_path / "plan.png")
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_an_unknown_suffix_is_refused():
    with pytest.raises(DrawingError, match=r"ends in \.html, \.svg, \.png, got 'plan\.pdf'"):
        draw(made_plan(), Path("plan.pdf"))


def test_a_library_that_is_missing_is_named_with_what_brings_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(DrawingError, match=r"rancast\[benchmark\]"):
        draw(made_plan(), tmp_path / "plan.svg")


def test_a_picture_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DrawingError, match=r"plan\.html cannot be written"):
        draw(made_plan(), tmp_path / "file" / "plan.html")
