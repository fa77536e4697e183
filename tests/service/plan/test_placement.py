"""What fits follows from the curves, and never turns around when there is more room."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.predictor import Rung
from service.budget import Profile
from service.plan.curves import Statistic
from service.plan.measurements import ContextCurve
from service.plan.placement import (
    answer_ms,
    busiest_call,
    cells_per_s,
    fit,
    largest_request,
    longest_context,
    place,
)
from tests.service.plan.makers import curves, line, measurements, question

MOST = 500
budgets = st.floats(0.001, 20_000)


@given(curves(), curves(), budgets, budgets)
def test_a_larger_budget_never_fits_fewer_cells(curve, around, one, other):
    small, large = sorted((one, other))
    asked = question()
    less = fit(Rung.FULL, curve, around, small, asked)
    more = fit(Rung.FULL, curve, around, large, asked)
    assert less.request_cells <= more.request_cells
    assert less.cells_per_s <= more.cells_per_s
    for few, many in zip(less.periods, more.periods, strict=True):
        assert few.cells <= many.cells


@given(curves(), curves(), budgets)
def test_the_largest_request_is_in_time_and_one_more_cell_is_not(curve, around, budget_ms):
    cells = largest_request(curve, around, budget_ms, MOST)
    assert 0 <= cells <= MOST
    assert cells == 0 or answer_ms(curve, around, cells) <= budget_ms
    assert cells == MOST or answer_ms(curve, around, cells + 1) > budget_ms


@given(curves(), curves(), budgets)
def test_a_call_under_load_leaves_time_to_wait_for_another(curve, around, budget_ms):
    cells, per_s = busiest_call(curve, around, budget_ms)
    assert cells <= curve.largest_call
    if cells == 0:
        assert per_s == 0.0
        return
    assert curve.duration_ms(cells, Statistic.P99) + answer_ms(curve, around, cells) <= budget_ms
    assert per_s == cells_per_s(curve, around, cells)
    assert per_s >= cells_per_s(curve, around, 1)


@given(curves(), curves(), st.floats(1.0, 10.0), budgets)
def test_a_slower_machine_never_fits_more(curve, around, slower, budget_ms):
    points = tuple(
        dataclasses.replace(point, p99_ms=point.p99_ms * slower, mean_ms=point.mean_ms * slower)
        for point in curve.points
    )
    slow = dataclasses.replace(curve, points=points)
    assert largest_request(slow, around, budget_ms, MOST) <= largest_request(
        curve, around, budget_ms, MOST
    )
    assert busiest_call(slow, around, budget_ms)[1] <= busiest_call(curve, around, budget_ms)[1]


@given(st.floats(1.0, 1_000.0), st.floats(1.0, 1_000.0), st.integers(1, 100))
def test_a_larger_budget_or_fewer_cells_never_shorten_the_context(one, other, cells):
    around = line(0.1, 0.1)
    contexts = [ContextCurve(steps, line(1.0, steps / 100)) for steps in (48, 96, 192, 768)]
    small, large = sorted((one, other))

    def steps(budget_ms: float, asked: int) -> int:
        return longest_context(contexts, around, budget_ms, asked) or 0

    assert steps(small, cells) <= steps(large, cells)
    assert steps(small, cells + 1) <= steps(small, cells)


def test_figures_of_a_line_are_those_that_can_be_worked_out_by_hand():
    # p99: 1.2 (2 + 4 n) for the model, 1.2 (0.2 + 0.1 n) around it
    curve, around = line(2.0, 4.0), line(0.2, 0.1)
    assert answer_ms(curve, around, 1) == pytest.approx(1.2 * 6.3)
    # 1.2 (2.2 + 4.1 n) <= 100 up to n = 19
    assert largest_request(curve, around, 100.0, 10_000) == 19
    # 1.2 (4.2 + 8.1 n) <= 100 up to n = 9
    cells, per_s = busiest_call(curve, around, 100.0)
    assert cells == 9
    assert per_s == pytest.approx(9_000 / (2.2 + 4.1 * 9))
    asked = question(periods_s=(60.0,), load_ratio=0.5)
    (period,) = fit(Rung.FULL, curve, around, 100.0, asked).periods
    assert period.cells == int(per_s * 30)


def test_more_than_a_request_may_hold_is_never_promised():
    assert largest_request(line(0.0, 1e-6), line(0.0, 1e-6), 1_000.0, 77) == 77


def test_every_budget_has_each_rung_and_every_loop_says_what_is_left():
    placement = place(measurements(), question(budgets_ms=(10.0, 100.0), cells=32))
    assert [(each.budget_ms, each.rung) for each in placement.fits] == [
        (budget_ms, rung) for budget_ms in (10.0, 100.0) for rung in Rung
    ]
    near, far = placement.profiles
    assert (near.profile, far.profile) == (Profile.NEAR_RT, Profile.NON_RT)
    for profile in (near, far):
        for time in (*profile.one_cell, *profile.cells):
            assert time.answer_ms + time.spare_ms == pytest.approx(profile.budget_ms)
    # 1.2 (2.2 + 32 (4 + 0.1)) is too late, 1.2 (2.2 + 32 (2 + 0.1)) is not
    assert [time.spare_ms >= 0 for time in near.cells] == [False, True, True]
    assert (near.longest_context_one, near.longest_context_cells) == (768, 384)
    assert (far.longest_context_one, far.longest_context_cells) == (768, 768)


def test_the_table_of_contexts_agrees_with_the_loop_that_it_is_for():
    placement = place(measurements(), question(cells=32, near_ms=50.0))
    fitting = [each.context_steps for each in placement.contexts if each.cells_ms <= 50.0]
    assert placement.profiles[0].longest_context_cells == max(fitting)
    for each in placement.contexts:
        assert (each.request_cells >= 32) == (each.cells_ms <= 50.0)
        assert each.one_cell_ms < each.cells_ms
