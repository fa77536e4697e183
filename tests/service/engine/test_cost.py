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


def disturbed_s(rng: np.random.Generator, line_s: float) -> float:
    """What a call takes that is interrupted now and then, each time for as long."""
    return line_s + 0.001 * rng.poisson(200 * line_s)


def test_ninety_nine_of_a_hundred_calls_are_within_what_is_reserved_for_them():
    rng = np.random.default_rng(0)
    cost = warmed(0.001, 0.001)
    exceeded = []
    for _ in range(4_000):
        effort = Effort(float(rng.uniform(1, 50)), 1)
        duration_s = disturbed_s(rng, 0.001 + 0.001 * effort.work)
        exceeded.append(duration_s > cost.longest_s(effort))
        cost.observe(effort, duration_s, 0.0)
    assert 0.001 < np.mean(exceeded[400:]) < 0.02


def test_short_calls_that_are_held_up_say_little_of_long_ones():
    rng = np.random.default_rng(0)
    cost = warmed(0.001, 0.001)
    for _ in range(1_000):
        effort = Effort(float(rng.choice([1, 50])), 1)
        cost.observe(effort, disturbed_s(rng, 0.001 + 0.001 * effort.work), 0.0)
    short_s, long_s = (cost.estimate_s(Effort(work, 1)) for work in (1, 50))
    assert cost.reserve_s(short_s) > 0.5 * short_s
    assert cost.reserve_s(long_s) < 0.3 * long_s


def test_the_longer_a_call_is_the_more_it_tells():
    cost = warmed(0.001, 0.001)
    taken_s = {0.1: 0.040, 5.0: 0.040, 50.0: 0.102}  # the short ones waited for something else
    for work in [*taken_s] * 100:
        cost.observe(Effort(work, 1), taken_s[work], 0.0)
    assert cost.estimate_s(Effort(50, 1)) == pytest.approx(0.102, rel=0.05)


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
