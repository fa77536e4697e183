"""Faults: at their rates, reproducible, and each file delivered exactly once."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.simulate.errors import OptionError
from training.simulate.faults import Delivery, FaultPlan, FaultRates
from training.simulate.network import NetworkSpec

SPEC = NetworkSpec(cells=3)
GNB = SPEC.gnbs[0]
RATES = st.builds(
    FaultRates,
    late=st.floats(0, 1),
    duplicate=st.floats(0, 1),
    missing_file=st.floats(0, 1),
    corrected=st.floats(0, 1),
    late_periods=st.integers(1, 7),
)


@settings(max_examples=40)
@given(rates=RATES, first=st.integers(0, 10**6), seed=st.integers(0, 2**40))
def test_every_file_arrives_exactly_once_and_in_time(rates, first, seed):
    plan = FaultPlan(seed, rates)
    count = 30
    wanted = {d for fates in plan.deliveries(GNB, first, count) for d in fates}
    arrived = []
    for step in range(first, first + count + rates.longest_delay_periods):
        for delivery in plan.due(GNB, step, first):
            assert delivery.period + delivery.delay_periods == step
            arrived.append(delivery)
    assert len(set(arrived)) == len(arrived)
    assert {d for d in arrived if d.period < first + count} == wanted


@given(rates=RATES, seed=st.integers(0, 2**40))
def test_the_last_file_of_a_period_is_right_unless_it_is_lost(rates, seed):
    for fates in FaultPlan(seed, rates).deliveries(GNB, 0, 40):
        if fates:
            last = max(fates, key=lambda delivery: delivery.delay_periods)
            assert not last.is_wrong
            assert [d.repeat for d in fates] == list(range(1, len(fates) + 1))


def test_without_faults_each_period_has_one_file_when_it_is_due():
    plan = FaultPlan(1, FaultRates())
    assert list(plan.due(GNB, 17, 0)) == [Delivery(17)]
    assert plan.deliveries(GNB, 0, 50) == [(Delivery(period),) for period in range(50)]
    assert not plan.lost(GNB, 0, 50).any()
    missing, omitted = plan.missing(GNB.cells[0], SPEC.kpis, 0, 50)
    assert not missing.any()
    assert not omitted.any()
    flagged, share = plan.suspect(GNB.cells[0], 0, 50)
    assert not flagged.any()
    assert (share == 1).all()
    assert plan.clock_ms(GNB, 900_000) == 0


def test_no_file_is_late_for_periods_that_have_none_of_their_own():
    plan = FaultPlan(1, FaultRates(late=1.0, late_periods=3))
    assert list(plan.due(GNB, 100, 100)) == []
    assert all(d.period >= 100 for step in range(100, 120) for d in plan.due(GNB, step, 100))


@pytest.mark.parametrize(
    ("rates", "happened"),
    [
        (FaultRates(late=0.3), lambda fates: fates[0].delay_periods > 0),
        (FaultRates(missing_file=0.3), lambda fates: not fates),
        (FaultRates(duplicate=0.3), lambda fates: len(fates) == 2 and not fates[0].is_wrong),
        (FaultRates(corrected=0.3), lambda fates: fates[0].is_wrong and fates[1].repeat == 2),
    ],
    ids=["late", "missing_file", "duplicate", "corrected"],
)
def test_faults_of_files_come_at_their_rate(rates, happened):
    fates = FaultPlan(5, rates).deliveries(GNB, 0, 4000)
    assert np.mean([happened(f) for f in fates]) == pytest.approx(0.3, abs=0.03)


def test_lost_periods_are_those_without_a_file():
    plan = FaultPlan(5, FaultRates(missing_file=0.4, late=0.5, corrected=0.5))
    empty = [not fates for fates in plan.deliveries(GNB, 70, 200)]
    np.testing.assert_array_equal(plan.lost(GNB, 70, 200), empty)


def test_missing_values_come_at_their_rate_half_of_them_left_out():
    plan = FaultPlan(5, FaultRates(missing_counter=0.2))
    missing, omitted = plan.missing(GNB.cells[1], SPEC.kpis, 0, 3000)
    assert missing.shape == (len(SPEC.kpis), 3000)
    assert missing.mean() == pytest.approx(0.2, abs=0.01)
    assert omitted.mean() == pytest.approx(0.1, abs=0.01)
    assert not (omitted & ~missing).any()


def test_a_measurement_is_missing_at_the_same_places_whatever_else_is_reported():
    plan = FaultPlan(5, FaultRates(missing_counter=0.2))
    every, _ = plan.missing(GNB.cells[1], SPEC.kpis, 0, 300)
    one, _ = plan.missing(GNB.cells[1], SPEC.kpis[4:5], 0, 300)
    np.testing.assert_array_equal(one[0], every[4])


def test_suspect_periods_were_measured_in_part():
    flagged, share = FaultPlan(5, FaultRates(suspect=0.25)).suspect(GNB.cells[2], 0, 3000)
    assert flagged.mean() == pytest.approx(0.25, abs=0.03)
    assert (share[~flagged] == 1).all()
    assert (share[flagged] < 1).all()
    assert (share > 0).all()


@given(seed=st.integers(0, 2**40), period=st.sampled_from([60_000, 300_000, 900_000, 86_400_000]))
def test_a_wrong_clock_still_names_the_right_period(seed, period):
    for gnb in NetworkSpec(cells=6).gnbs:
        clock_ms = FaultPlan(seed, FaultRates(wrong_clock=1.0)).clock_ms(gnb, period)
        assert clock_ms != 0
        assert clock_ms % 1000 == 0
        assert abs(clock_ms) <= 0.1 * period


def test_clocks_are_wrong_at_their_rate_and_in_both_directions():
    gnbs = NetworkSpec(cells=2000, cells_per_gnb=1).gnbs
    plan = FaultPlan(5, FaultRates(wrong_clock=0.3))
    clocks = np.array([plan.clock_ms(gnb, 900_000) for gnb in gnbs])
    assert (clocks != 0).mean() == pytest.approx(0.3, abs=0.04)
    assert (clocks > 0).any()
    assert (clocks < 0).any()


@pytest.mark.parametrize("name", [f.name for f in fields(FaultRates) if f.name != "late_periods"])
@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_a_rate_outside_0_to_1_is_refused_by_name(name, value):
    with pytest.raises(OptionError, match=f"{name}.*0 to 1"):
        replace(FaultRates(), **{name: value})


@pytest.mark.parametrize("periods", [0, 97])
def test_a_delay_out_of_range_is_refused(periods):
    with pytest.raises(OptionError, match=r"late_periods.*1 to 96"):
        FaultRates(late_periods=periods)
