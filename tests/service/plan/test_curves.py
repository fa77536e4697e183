"""Curves say of sizes that were not measured what those that were allow."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.plan.curves import Curve, Point, Statistic
from tests.service.plan.makers import curves, durations_ms, line


@given(curves(), st.integers(0, 300), st.sampled_from(Statistic))
def test_more_cells_never_take_less_time(curve, cells, statistic):
    fewer = curve.duration_ms(cells, statistic)
    assert curve.duration_ms(cells + 1, statistic) >= fewer * (1 - 1e-12)


@given(curves(), st.integers(1, 300), st.integers(1, 4))
def test_several_of_the_largest_call_come_one_after_the_other(curve, cells, calls):
    whole = curve.duration_ms(curve.largest_call, Statistic.P99)
    more = curve.duration_ms(cells + calls * curve.largest_call, Statistic.P99)
    assert more == pytest.approx(calls * whole + curve.duration_ms(cells, Statistic.P99))


def test_a_measured_size_takes_what_was_measured_and_others_lie_on_straight_lines():
    curve = line(2.0, 3.0, (1, 4, 32), p99_ratio=1.0)
    for cells in (1, 2, 3, 4, 7, 31, 32):
        assert curve.duration_ms(cells, Statistic.P50) == pytest.approx(2.0 + 3.0 * cells)
    assert curve.duration_ms(0, Statistic.P50) == 0


def test_a_smaller_call_that_measured_longer_holds_for_the_larger_one():
    curve = Curve((Point(1, 5.0, 50.0, 5.0, 9), Point(2, 6.0, 7.0, 6.0, 9)))
    assert curve.duration_ms(2, Statistic.P99) == 50.0
    assert curve.duration_ms(2, Statistic.P50) == 6.0


@pytest.mark.parametrize("sizes", [(), (2,), (1, 4, 4), (1, 8, 2)])
def test_sizes_ascend_from_one_cell(sizes):
    with pytest.raises(ValueError, match="expected sizes that ascend from 1 cell"):
        Curve(tuple(Point(cells, 1.0, 1.0, 1.0, 1) for cells in sizes))


@given(st.lists(durations_ms, min_size=1, max_size=300))
def test_quantiles_are_durations_that_enough_calls_do_not_exceed(durations):
    point = Point.of(1, [each / 1_000 for each in durations])
    for level, figure in ((0.5, point.p50_ms), (0.99, point.p99_ms)):
        assert any(math.isclose(figure, each) for each in durations)
        inside = sum(each <= figure * (1 + 1e-9) for each in durations)
        assert inside >= level * len(durations) - 1e-9
    assert point.p50_ms <= point.p99_ms
    assert point.mean_ms == pytest.approx(math.fsum(durations) / len(durations))
    assert point.calls == len(durations)


def test_of_few_calls_the_longest_stands_for_the_high_quantile():
    assert Point.of(1, [0.001] * 98 + [0.5]).p99_ms == 500.0
    assert Point.of(1, [0.001] * 99 + [0.5]).p99_ms == 1.0
