"""Costs are learnt from what calls take, and the margin from how far they exceed it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.cost import CostModel, Effort, Measured

SIZES = (1.0, 4.0, 16.0)
seconds = st.floats(1e-5, 1.0)


def warmed(call_s: float, work_s: float) -> CostModel:
    efforts = [Effort(size, 1) for size in SIZES]
    return CostModel([Measured(e, call_s * e.calls + work_s * e.work) for e in efforts])


@given(call_s=seconds, work_s=seconds, work=st.floats(0.1, 100), calls=st.integers(1, 5))
def test_what_is_on_a_line_is_estimated_exactly(call_s, work_s, work, calls):
    expected = call_s * calls + work_s * work
    assert warmed(call_s, work_s).estimate_s(Effort(work, calls)) == pytest.approx(expected, 1e-6)


@given(
    call_s=seconds,
    work_s=seconds,
    factor=st.floats(0.1, 10),
    sizes=st.lists(st.floats(0.5, 40), min_size=1, max_size=3),
)
def test_a_machine_that_changes_its_speed_is_followed(call_s, work_s, factor, sizes):
    cost = warmed(call_s, work_s)
    for each in sizes * 300:
        cost.observe(Effort(each, 1), factor * (call_s + work_s * each), 0.0)
    for each in sizes:
        expected_s = factor * (call_s + work_s * each)
        assert cost.estimate_s(Effort(each, 1)) == pytest.approx(expected_s, rel=0.1)


def test_a_call_that_costs_more_alone_is_told_from_its_work():
    cost = warmed(0.001, 0.001)
    for size in (1.0, 2.0, 30.0) * 100:
        cost.observe(Effort(size, 1), 0.005 + 0.001 * size, 0.0)
    assert cost.call_s == pytest.approx(0.005, rel=0.1)
    assert cost.work_s == pytest.approx(0.001, rel=0.1)


def test_the_margin_covers_ninety_nine_of_a_hundred_calls():
    rng = np.random.default_rng(0)
    cost = warmed(0.001, 0.001)
    exceeded = []
    for _ in range(2_000):
        effort = Effort(float(rng.uniform(1, 30)), 1)
        duration_s = (0.001 + 0.001 * effort.work) * rng.lognormal(0, 0.2)
        exceeded.append(duration_s > cost.margin_ratio * cost.estimate_s(effort))
        cost.observe(effort, duration_s, 0.0)
    assert np.mean(exceeded[200:]) < 0.03
    assert cost.margin_ratio < 2


@given(st.lists(st.tuples(st.floats(0, 1e3), st.floats(0, 1e3)), max_size=50))
def test_no_cost_is_ever_below_zero(calls):
    cost = warmed(0.01, 0.01)
    for work, duration_s in calls:
        cost.observe(Effort(work, 1), duration_s, 0.0)
        assert min(cost.call_s, cost.work_s) >= 0
        assert np.isfinite(cost.estimate_s(Effort(1, 1)))


def test_without_a_measured_call_nothing_costs_anything():
    cost = CostModel()
    cost.observe(Effort(1, 1), 5.0, 0.0)
    assert cost.estimate_s(Effort(1, 1)) == 0


def test_durations_that_grow_with_nothing_are_laid_on_the_call():
    cost = CostModel([Measured(Effort(size, 1), 0.01) for size in SIZES])
    assert cost.work_s == pytest.approx(0, abs=1e-9)
    assert cost.call_s == pytest.approx(0.01)
