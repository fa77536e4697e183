"""Figures are means over seeds, against the targets, and say where they come from."""

from __future__ import annotations

import pytest

from benchmarks.accuracy.exam import TASKS
from benchmarks.accuracy.rows import OPPONENTS, rows
from benchmarks.accuracy.sheet import Sheet


def scores(wql: float, cov80: float = 0.8) -> dict[str, float]:
    return {"WQL": wql, "MASE": 1.1, "WAPE": 0.4, "cov80": cov80}


def every_task(wql: float, cov80: float = 0.8) -> dict[str, dict[str, float]]:
    return {task: scores(wql, cov80) for task in TASKS}


def sheet(seed: int, wql: float, model: str = "small", **parts: dict) -> Sheet:
    return Sheet(
        f"rancast-{model}-seed{seed}", parameters=9, parts={"zero_shot": every_task(wql), **parts}
    )


def figures(*sheets: Sheet) -> dict:
    return {row.id: row for row in rows({each.subject: each for each in sheets})}


def test_a_figure_is_the_mean_over_seeds_with_its_spread():
    found = figures(sheet(0, 0.32), sheet(1, 0.33), sheet(2, 0.34))
    row = found["accuracy.lte_hourly.zero_shot"]
    assert row.value == pytest.approx(0.33)
    assert (row.detail["min"], row.detail["max"]) == (0.32, 0.34)
    assert set(row.detail["seeds"]) == {0, 1, 2}
    assert (row.target, row.met) == (0.331, True)
    assert not found["accuracy.tractor_1s.unseen_runs"].met


def test_each_figure_says_which_seeds_were_measured_and_which_were_read():
    fresh = Sheet("rancast-small-seed0").with_part("zero_shot", every_task(0.3))
    row = figures(fresh, sheet(1, 0.3), sheet(2, 0.3))["accuracy.lte_hourly.zero_shot"]
    assert row.detail["measured_now_seeds"] == "0"
    assert row.detail["read_seeds"] == "1,2"


def test_what_was_not_scored_is_no_figure():
    found = figures(sheet(0, 0.3))
    assert set(found) == {
        *(f"accuracy.{task}.cov80_shipped" for task in TASKS),
        "accuracy.lte_hourly.zero_shot",
        "accuracy.barcelona_2min.zero_shot",
        "accuracy.tractor_1s.unseen_runs",
    }
    assert figures() == {}


def test_the_larger_model_has_figures_of_its_own():
    found = figures(sheet(0, 0.32), sheet(0, 0.30, "base"))
    assert found["accuracy.lte_hourly.zero_shot"].value == 0.32
    assert found["accuracy.lte_hourly.zero_shot.base"].value == 0.30


def test_opponents_stand_beside_every_task():
    others = Sheet(
        OPPONENTS,
        parts={"LightGBM (untuned, 100,000 rows)": every_task(0.35), "last value": every_task(0.5)},
    )
    row = figures(sheet(0, 0.3), others)["accuracy.barcelona_2min.zero_shot"]
    assert row.opponent.startswith("LightGBM")
    assert (row.detail["lightgbm"], row.detail["last_value"]) == (0.35, 0.5)


@pytest.mark.parametrize(
    ("cov80", "met"), [(0.76, False), (0.77, True), (0.83, True), (0.84, False)]
)
def test_coverage_is_to_lie_between_two_bounds(cov80, met):
    row = figures(sheet(0, 0.3, recalibrated=every_task(0.3, cov80)))["accuracy.lte_hourly.cov80"]
    assert row.value == cov80
    assert row.met is met


def test_coverage_as_shipped_has_no_target():
    row = figures(sheet(0, 0.3))["accuracy.lte_hourly.cov80_shipped"]
    assert (row.target, row.met) == (None, None)


def test_tuned_weights_are_held_to_their_own_targets():
    found = figures(sheet(0, 0.33, tuned=every_task(0.322)))
    assert found["accuracy.lte_hourly.tuned"].met
    assert not found["accuracy.tractor_1s.tuned"].met
    assert found["accuracy.lte_hourly.cov80_tuned"].met


def test_gaps_are_judged_by_what_the_same_seed_does_without_them():
    gaps = {"gaps": every_task(0.34), "late_end": every_task(0.6)}
    found = figures(sheet(0, 0.34, "small", **gaps), sheet(1, 0.32, "small", **gaps))
    row = found["accuracy.gaps.lte_hourly"]
    assert row.value == pytest.approx((1 + 0.34 / 0.32) / 2)
    assert row.met
    assert found["accuracy.trailing_gap.lte_hourly"].met is None


def test_a_cold_start_is_to_beat_the_last_day_by_a_tenth():
    cold = {"rancast": scores(0.46), "seasonal naive": scores(0.5)}
    row = figures(sheet(0, 0.3, cold_start=cold))["accuracy.cold_start"]
    assert row.value == pytest.approx(0.92)
    assert not row.met


def test_more_context_is_to_be_no_worse():
    part = {
        f"{source}.x{factor}": {"WQL": wql}
        for source in ("lte_hourly", "synthetic")
        for factor, wql in ((1, 0.4), (2, 0.4), (4, 0.41))
    }
    alone = Sheet("position-alibi", parts={"longer_context": part})
    found = figures(sheet(0, 0.3, longer_context=part), alone)
    assert found["accuracy.longer_context.lte_hourly.x2"].met
    assert not found["accuracy.longer_context.synthetic.x4"].met
    assert found["accuracy.longer_context.alibi.lte_hourly.x4"].value == pytest.approx(1.025)


def test_the_lstm_is_compared_on_every_task():
    lstm = Sheet("lstm", parameters=9, parts={"zero_shot": every_task(0.4)})
    found = figures(sheet(0, 0.38), sheet(1, 0.36), lstm)
    for task in TASKS:
        row = found[f"accuracy.vs_lstm.{task}"]
        assert row.value == pytest.approx(0.925)
        assert row.met
