"""The network: deterministic, and physically consistent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.simulate.measurements import MEASUREMENTS
from training.simulate.network import NetworkSpec
from training.simulate.profiles import PROFILES
from training.simulate.radio import served_ratio

FIRST = 1_790_000_000_000 // 900_000
FORTNIGHT = 14 * 96


def measured(spec: NetworkSpec, first: int = FIRST, count: int = FORTNIGHT):
    """By KPI name: (C, n)."""
    cells = [cell for gnb in spec.gnbs for cell in gnb.cells]
    values = spec.values(cells, first, count)
    return {name: values[:, k] for k, name in enumerate(spec.kpis)}


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**63 - 1),
    first=st.integers(0, 4_000_000),
    count=st.integers(1, 60),
    data=st.data(),
)
def test_values_do_not_depend_on_how_they_are_asked_for(seed, first, count, data):
    spec = NetworkSpec(cells=2, seed=seed, time_zone="Europe/Madrid")
    cells = spec.gnbs[0].cells
    whole = spec.values(cells, first, count)
    skip = data.draw(st.integers(0, count - 1))
    np.testing.assert_array_equal(
        spec.values(cells[1:], first + skip, 1)[0, :, 0], whole[1, :, skip]
    )


def test_two_networks_of_one_spec_are_equal_and_seeds_differ():
    spec = NetworkSpec(cells=5, seed=9)
    again = NetworkSpec(cells=5, seed=9)
    assert spec.gnbs == again.gnbs
    cells = spec.gnbs[0].cells
    np.testing.assert_array_equal(spec.values(cells, 5, 9), again.values(cells, 5, 9))
    other = replace(spec, seed=10)
    assert (other.values(other.gnbs[0].cells, 5, 9) != spec.values(cells, 5, 9)).mean() > 0.7


def test_a_larger_network_begins_with_the_smaller_one():
    small, large = NetworkSpec(cells=6), NetworkSpec(cells=9)
    assert large.gnbs[:2] == small.gnbs


def test_the_last_gnb_takes_the_cells_that_are_left():
    spec = NetworkSpec(cells=8, cells_per_gnb=3)
    assert [len(gnb.cells) for gnb in spec.gnbs] == [3, 3, 2]
    assert [gnb.name for gnb in spec.gnbs] == ["GNB-1", "GNB-2", "GNB-3"]
    assert [cell.local_id for cell in spec.gnbs[1].cells] == [1, 2, 3]
    assert [cell.index for gnb in spec.gnbs for cell in gnb.cells] == list(range(8))


def test_classes_appear_by_weight_and_sectors_share_theirs():
    spec = NetworkSpec(cells=3000, cells_per_gnb=3)
    names = [gnb.cells[0].profile.name for gnb in spec.gnbs]
    assert all(
        cell.profile.name == name
        for gnb, name in zip(spec.gnbs, names, strict=True)
        for cell in gnb.cells
    )
    total = sum(profile.weight for profile in PROFILES.values())
    for name, profile in PROFILES.items():
        assert names.count(name) / len(names) == pytest.approx(profile.weight / total, abs=0.01)


def test_only_chosen_classes_and_measurements_appear():
    spec = NetworkSpec(cells=30, profiles=("rural",), kpis=("PEE.AvgPower", "RRU.PrbTotDl"))
    assert {cell.profile.name for gnb in spec.gnbs for cell in gnb.cells} == {"rural"}
    every = replace(spec, kpis=tuple(MEASUREMENTS))
    chosen, reference = measured(spec, count=20), measured(every, count=20)
    assert list(chosen) == ["PEE.AvgPower", "RRU.PrbTotDl"]
    np.testing.assert_array_equal(chosen["RRU.PrbTotDl"], reference["RRU.PrbTotDl"])


def test_no_cells_give_no_rows():
    spec = NetworkSpec(cells=1)
    assert spec.values([], 0, 4).shape == (0, len(MEASUREMENTS), 4)


@pytest.fixture(scope="module")
def fortnight():
    return measured(NetworkSpec(cells=60, seed=3, period_ms=900_000))


def test_every_value_is_finite_not_negative_and_rounded(fortnight):
    for name, values in fortnight.items():
        assert np.isfinite(values).all(), name
        assert (values >= 0).all(), name
        decimals = MEASUREMENTS[name].decimals
        texts = [f"{v:.{decimals}f}" for v in values[0, :50]]
        assert [float(text) for text in texts] == values[0, :50].tolist(), name


def test_prb_use_saturates_under_100_percent(fortnight):
    for name in ("RRU.PrbTotDl", "RRU.PrbTotUl"):
        assert fortnight[name].max() < 100
        assert fortnight[name].min() > 0
    assert fortnight["RRU.PrbTotDl"].max() > 85


def test_throughput_of_users_falls_under_congestion(fortnight):
    prb, throughput = fortnight["RRU.PrbTotDl"], fortnight["DRB.UEThpDl"]
    for cell in range(len(prb)):
        calm = prb[cell] < np.quantile(prb[cell], 0.25)
        full = prb[cell] > np.quantile(prb[cell], 0.95)
        assert throughput[cell, full].mean() < throughput[cell, calm].mean()
    crowded = prb > 90
    usual = throughput[prb < 20].mean()
    assert throughput[crowded].mean() < 0.35 * usual


def test_setups_succeed_at_most_as_often_as_they_are_tried(fortnight):
    attempts, successes = fortnight["RRC.ConnEstabAtt"], fortnight["RRC.ConnEstabSucc"]
    assert (successes <= attempts).all()
    lost = 1 - successes.sum() / attempts.sum()
    assert 0.0005 < lost < 0.02
    full = fortnight["RRU.PrbTotDl"] > 92
    assert 1 - successes[full].sum() / attempts[full].sum() > 2 * lost


def test_energy_is_power_times_time(fortnight):
    np.testing.assert_allclose(
        fortnight["PEE.Energy"], fortnight["PEE.AvgPower"] * 0.25 / 1000, atol=5e-7
    )


def test_maxima_are_not_below_means(fortnight):
    assert (fortnight["RRC.ConnMax"] >= fortnight["RRC.ConnMean"]).all()
    assert (fortnight["DRB.MaxActiveUeDl"] >= fortnight["DRB.MeanActiveUeDl"]).all()
    assert (fortnight["RRC.ConnMean"] >= fortnight["DRB.MeanActiveUeDl"]).all()


def test_volume_is_what_the_cell_can_carry_at_most():
    spec = NetworkSpec(cells=30, seed=3)
    values = measured(spec, count=FORTNIGHT)
    capacity = np.array([c.capacity_mbit_s for gnb in spec.gnbs for c in gnb.cells])[:, None]
    assert (values["DRB.PdcpSduVolumeDL"] / 900 < 1.5 * capacity).all()
    assert (values["DRB.PdcpSduVolumeUL"] < values["DRB.PdcpSduVolumeDL"]).all()


@pytest.mark.parametrize(
    "name", ["DRB.PdcpSduVolumeDL", "RRC.ConnMean", "PEE.AvgPower", "RRU.PrbTotUl"]
)
def test_kpis_of_one_cell_move_together(fortnight, name):
    prb = fortnight["RRU.PrbTotDl"]
    correlation = [np.corrcoef(a, b)[0, 1] for a, b in zip(prb, fortnight[name], strict=True)]
    assert np.median(correlation) > 0.85


def test_yesterday_and_last_week_tell_about_today(fortnight):
    prb = fortnight["RRU.PrbTotDl"]
    for lag in (96, 7 * 96):
        pairs = [np.corrcoef(series[:-lag], series[lag:])[0, 1] for series in prb]
        assert np.median(pairs) > 0.6


def test_amounts_follow_the_length_of_the_period():
    quarter = NetworkSpec(cells=3, period_ms=900_000)
    hour = NetworkSpec(cells=3, period_ms=3_600_000)
    of_quarters = measured(quarter, count=96 * 7)["DRB.PdcpSduVolumeDL"].sum()
    of_hours = measured(hour, first=FIRST // 4, count=24 * 7)["DRB.PdcpSduVolumeDL"].sum()
    assert of_hours == pytest.approx(of_quarters, rel=0.05)


@given(load=st.floats(0, 1e6))
def test_a_cell_serves_all_of_little_and_never_more_than_it_has(load):
    served = float(served_ratio(np.array([load]))[0])
    assert served <= min(load, 1.0) + 1e-12
    if load < 0.3:
        assert served >= 0.995 * load
