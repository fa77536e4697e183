"""What the command line asks of a plan, with the defaults that a service would have."""

from __future__ import annotations

from service.budget import Profile
from service.plan.cli import BUDGETS_MS, PERIODS_S, Options, question_of, workload_of
from service.settings import Settings

OPTIONS = Options(horizon=24, kpis=4, step_seconds=0.5, cells=32, seconds=1.0)


def test_budgets_and_periods_have_defaults_and_ascend():
    question = question_of(OPTIONS, Settings())
    assert question.budgets_ms == BUDGETS_MS
    assert question.periods_s == PERIODS_S
    chosen = Options(24, 4, 900, 32, 1.0, budgets_ms=[50, 5, 50], periods_s=[900, 60])
    assert question_of(chosen, Settings()).budgets_ms == (5, 50)
    assert question_of(chosen, Settings()).periods_s == (60, 900)


def test_loops_have_the_budgets_of_the_service_that_would_run_here():
    assert question_of(OPTIONS, Settings()).loop_ms == {
        Profile.NEAR_RT: 100.0,
        Profile.NON_RT: 5_000.0,
    }
    own = Settings(profile="non-rt", budget_default_ms=2_000.0)
    assert question_of(OPTIONS, own).loop_ms[Profile.NON_RT] == 2_000.0
    assert question_of(OPTIONS, own).loop_ms[Profile.NEAR_RT] == 100.0
    stated = Options(24, 4, 900, 32, 1.0, near_rt_ms=20.0)
    near = Settings(budget_default_ms=50.0)
    assert question_of(OPTIONS, near).loop_ms[Profile.NEAR_RT] == 50.0
    assert question_of(stated, near).loop_ms[Profile.NEAR_RT] == 20.0


def test_a_cell_has_as_much_history_as_the_store_keeps():
    workload = workload_of(OPTIONS, Settings(history_steps=96))
    assert (workload.history_steps, workload.step_ms) == (96, 500)
    given = Options(24, 4, 900, 32, 1.0, history_steps=10)
    assert workload_of(given, Settings()).history_steps == 10
