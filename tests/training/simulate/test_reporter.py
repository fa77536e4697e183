"""From values and faults to reports."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from training.simulate.faults import Delivery, FaultPlan, FaultRates
from training.simulate.measurements import MEASUREMENTS
from training.simulate.network import NetworkSpec
from training.simulate.reporter import Reporter

NETWORK = NetworkSpec(cells=2, seed=4)
GNB = NETWORK.gnbs[0]


def reporter(**rates: Any) -> Reporter:
    return Reporter(NETWORK, FaultPlan(4, FaultRates(**rates)))


def test_single_reports_are_the_truth_of_their_period():
    whole = NETWORK.values(GNB.cells, 90, 20)
    for i in range(20):
        report = reporter().single(GNB, Delivery(90 + i))
        np.testing.assert_array_equal(report.values[:, :, 0], whole[:, :, i])
        assert report.periods.tolist() == [90 + i]
        assert report.samples == 2 * len(NETWORK.kpis)


def test_remembered_values_are_bounded_and_change_nothing():
    one = reporter()
    periods = [5, 900, 100_000, 7, 250_000, 901, 6, 5]
    for period in periods:
        report = one.single(GNB, Delivery(period))
        np.testing.assert_array_equal(report.values, NETWORK.values(GNB.cells, period, 1))
    assert len(one._blocks) == 3


@pytest.mark.parametrize(
    ("cells", "periods"), [(12, 96), (10_000, 26), (100_000, 2), (1_000_000, 1)]
)
def test_blocks_of_large_networks_are_shorter(cells, periods):
    network = NetworkSpec(cells=cells)
    assert Reporter(network, FaultPlan(4, FaultRates())).block_periods == periods
    assert 3 * cells * len(network.kpis) * periods * 8 <= max(100e6, 3 * 8 * 15 * cells)


def test_wrong_reports_hold_zeros():
    report = reporter().single(GNB, Delivery(100, is_wrong=True))
    assert not report.values.any()
    assert not report.suspect.any()


def test_daily_reports_leave_out_lost_periods():
    lossy = reporter(missing_file=0.5)
    report = lossy.daily(GNB, 1000, 96)
    assert report is not None
    kept = ~lossy.plan.lost(GNB, 1000, 96)
    assert report.periods.tolist() == (1000 + np.flatnonzero(kept)).tolist()
    assert report.count == 96
    np.testing.assert_array_equal(report.values, NETWORK.values(GNB.cells, 1000, 96)[:, :, kept])


def test_a_day_that_is_lost_entirely_has_no_report():
    assert reporter(missing_file=1.0).daily(GNB, 1000, 4) is None


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_suspect_amounts_are_cut_short_and_means_are_not(name):
    report = reporter(suspect=1.0).daily(GNB, 1000, 48)
    assert report is not None
    assert report.suspect.all()
    k = NETWORK.kpis.index(name)
    truth = NETWORK.values(GNB.cells, 1000, 48)[:, k]
    if MEASUREMENTS[name].additive:
        assert (report.values[:, k] < truth).mean() > 0.9
        assert report.values[:, k].min() > 0
    else:
        np.testing.assert_array_equal(report.values[:, k], truth)
