"""Options: each out of range is refused by name."""

from __future__ import annotations

import dataclasses
import math
from datetime import UTC, datetime
from pathlib import Path

import pytest

from training.simulate import OptionError, SimulateError, SimulateOptions
from training.simulate.dialects import DIALECTS


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("cells", 0, "1 to 100000"),
        ("cells", 100_001, "1 to 100000"),
        ("cells_per_gnb", 0, "1 to"),
        ("days", -1.0, "0 to"),
        ("days", math.nan, "0 to"),
        ("seed", -1, "0 to"),
        ("periods", -1, "0 to"),
        ("speed", 0.0, "more than 0"),
        ("speed", math.nan, "more than 0"),
        ("keep_days", 0.001, "0.0104"),
        ("period_seconds", 1, "whole minutes"),
        ("period_seconds", 90, "whole minutes"),
        ("period_seconds", 420, "divisor of a day"),
        ("start", datetime(2026, 1, 1), "offset from UTC"),
        ("start", datetime(1969, 1, 1, tzinfo=UTC), "1970 or later"),
        ("time_zone", "Europe/Atlantis", "Europe/Madrid"),
        ("time_zone", "../etc/passwd", "Europe/Madrid"),
        ("kpis", (), "one or more"),
        ("kpis", ("RRU.PrbTotDl", "RRU.PrbTotDl"), "each once"),
        ("kpis", ("RRU.PrbTot",), "RRU.PrbTotDl"),
        ("profiles", ("harbour",), "residential"),
        ("dialects", ("huawei",), "ericsson"),
        ("history_layout", "month", "'day' or 'period'"),
    ],
)
def test_an_option_out_of_range_is_refused_by_name(name, value, expected):
    with pytest.raises(OptionError, match=name) as refused:
        dataclasses.replace(SimulateOptions(out=Path("pm")), **{name: value})
    assert "expected" in str(refused.value)
    assert expected in str(refused.value)
    assert isinstance(refused.value, SimulateError)


def test_a_dialect_without_a_counter_for_any_kpi_is_refused():
    with pytest.raises(OptionError, match=r"nokia.*RRU\.PrbTotDl"):
        SimulateOptions(out=Path("pm"), dialects=("nokia",), kpis=("RRC.ConnMean",))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_takes_the_default_kpis(dialect):
    assert SimulateOptions(out=Path("pm"), dialects=(dialect,)).dialects == (dialect,)


def test_the_history_has_whole_periods():
    options = SimulateOptions(out=Path("pm"), days=0.1, period_seconds=300)
    assert options.history_periods == 28
    assert options.period_ms == 300_000
    assert SimulateOptions(out=Path("pm"), days=14).history_periods == 14 * 96


def test_live_files_are_kept_for_ever_unless_said_otherwise():
    assert SimulateOptions(out=Path("pm")).kept_periods == math.inf
    assert SimulateOptions(out=Path("pm"), keep_days=0.5).kept_periods == 48


def test_the_network_is_that_of_the_options():
    options = SimulateOptions(
        out=Path("pm"),
        cells=7,
        cells_per_gnb=2,
        seed=3,
        time_zone="Asia/Tokyo",
        kpis=("PEE.Energy",),
        profiles=("rural", "highway"),
        period_seconds=300,
    )
    network = options.network()
    assert (network.cells, network.seed, network.period_ms) == (7, 3, 300_000)
    assert network.zone.key == "Asia/Tokyo"
    assert network.kpis == ("PEE.Energy",)
    assert len(network.gnbs) == 4
