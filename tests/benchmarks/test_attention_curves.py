"""Curves of attention: their exponents, and the plots that show them."""

from __future__ import annotations

import json
import re

import pytest

from benchmarks.attention_curves import NAME, Point, exponent
from benchmarks.harness import RESULTS


@pytest.mark.parametrize("power", [0.0, 1.0, 1.5, 2.0])
def test_the_exponent_of_a_power_is_that_power(power):
    points = [Point(n, 0.3 * n**power) for n in (16, 64, 256, 1024)]
    assert exponent(points) == pytest.approx(power, abs=1e-12)


def test_the_exponent_is_that_of_the_long_end():
    costs = [Point(n, 500.0) for n in (16, 32, 64)] + [Point(n, float(n)) for n in (1, 2, 4)]
    assert exponent(costs) == pytest.approx(1.0)


@pytest.mark.parametrize("points", [[], [Point(16, 1.0)], [Point(16, 0.0), Point(32, 1.0)]])
def test_too_few_points_have_no_exponent(points):
    with pytest.raises(ValueError, match="expected two points or more above 0"):
        exponent(points)


def test_the_plots_are_those_of_the_results(tmp_path):
    pytest.importorskip("matplotlib", reason="the benchmark extra draws the plots")
    from benchmarks.attention_plots import IMAGES, draw_all

    for drawn in draw_all(folder=tmp_path):
        kept = IMAGES / drawn.name
        assert kept.read_bytes() == drawn.read_bytes(), "call benchmarks.attention_plots.draw_all"


def test_the_plots_follow_the_results_and_bear_no_date(tmp_path):
    pytest.importorskip("matplotlib", reason="the benchmark extra draws the plots")
    from benchmarks.attention_plots import draw_all

    record = json.loads((RESULTS / f"{NAME}.json").read_text(encoding="utf-8"))
    before = [path.read_text(encoding="utf-8") for path in draw_all(folder=tmp_path)]
    for figure in record["results"]:
        for point in figure["detail"]["points"]:
            point.update({unit: 3 * value for unit, value in point.items() if unit != "n"})
    (tmp_path / f"{NAME}.json").write_text(json.dumps(record), encoding="utf-8")
    after = [path.read_text(encoding="utf-8") for path in draw_all(tmp_path, tmp_path)]
    assert all(one != other for one, other in zip(before, after, strict=True))
    assert not any(re.search(r"\b20\d\d-\d\d", picture) for picture in before)
