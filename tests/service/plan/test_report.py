"""What the terminal shows of a plan."""

from __future__ import annotations

import dataclasses
import io

import pytest
from rich.console import Console

from service.plan.planning import Plan, plan_of
from service.plan.report import report
from tests.service.plan.makers import made_plan, measurements, question


def shown(plan: Plan, width: int = 80) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(report(plan))
    return console.export_text()


def test_it_says_what_was_measured_and_how():
    text = shown(made_plan())
    assert "made-up 1, compiled bfloat16, attention avx512; 1 of 2 cores of A CPU" in text
    assert "a cell: 4 KPIs x 1,440 samples of 900 s, 24 steps at 3 levels" in text


@pytest.mark.parametrize("width", [80, 200])
def test_nothing_is_cut_off_on_a_terminal_of_80_columns(width):
    text = shown(made_plan(), width)
    assert "…" not in text
    assert "132 / 158" not in text
    assert "130 / 156" in text  # 32 cells by full


def test_budgets_show_the_largest_request_and_what_is_served():
    lines = shown(made_plan(), 200).splitlines()
    (line,) = [each for each in lines if "100 ms" in each and "full" in each and "│" in each]
    assert [part.strip() for part in line.split("│")[1:-1]] == [
        *("100 ms", "full", "19", "9", "230"),
        *("6,905", "103,580"),
    ]


def test_what_does_not_fit_has_a_dash_and_what_is_capped_a_plus():
    plan = plan_of(measurements(), question(budgets_ms=(0.5, 1e9)))
    text = shown(plan, 200)
    (line,) = [each for each in text.splitlines() if "0.5 ms" in each]
    assert [part.strip() for part in line.split("│")[2:-1]] == ["full", *5 * "-"]
    assert "10,000+" in text


def test_the_longest_contexts_in_time_are_named():
    text = " ".join(shown(made_plan()).split())
    assert "the longest in time: 768 samples for one cell, 384 samples for 32" in text
    text = " ".join(shown(made_plan(near_ms=1.0)).split())
    assert "the longest in time: none for one cell" in text


def test_memory_is_told_or_said_not_to_be_known():
    text = shown(made_plan())
    assert "400 MiB" in text
    assert "1.00 MiB" in text
    assert "19.5 KiB" in text
    unknown = plan_of(dataclasses.replace(measurements(), memory=None), question())
    assert "not known: only Linux" in shown(unknown)


@pytest.mark.parametrize(("ratio", "said"), [(1.9, False), (0.95, False), (0.33, True)])
def test_a_busy_machine_is_told_of(ratio, said):
    text = " ".join(shown(plan_of(measurements(cpu_ratio=ratio), question())).split())
    assert ("measure again while it is idle" in text) is said
    assert ("had a processor for 33% of their time" in text) is said
