"""File names of TS 32.432."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from training.simulate.dialects import DIALECTS
from training.simulate.naming import NameStyle, file_name

GRAMMAR = re.compile(
    r"(?P<kind>[AC])(?P<date>\d{8})\.(?P<begin>\d{4}[+-]\d{4})"
    r"-((?P<end_date>\d{8})\.)?(?P<end>\d{4}[+-]\d{4})"
    r"(_-(?P<job>[A-Za-z0-9]+))?_(?P<unique>[^_]+)(_-_(?P<repeat>\d+))?"
    r"\.(xml|json|csv|parquet)"
)


def test_one_period_is_type_a_with_local_times_and_offsets(make_report):
    assert file_name(make_report(), NameStyle()) == "A20261102.0100+0100-0115+0100_GNB-1.xml"


def test_several_periods_are_type_c_with_the_date_of_the_end(make_report):
    report = make_report(92)
    assert file_name(report, NameStyle()) == "C20261102.0100+0100-20261103.0000+0100_GNB-1.xml"


def test_type_a_has_no_end_date_over_midnight_either(make_report):
    report = make_report(start=datetime(2026, 11, 2, 22, 45, tzinfo=UTC))
    assert file_name(report, NameStyle()) == "A20261102.2345+0100-0000+0100_GNB-1.xml"


def test_a_repeated_file_states_its_repeat_count(make_report):
    name = file_name(make_report(repeat=2), NameStyle())
    assert name == "A20261102.0100+0100-0115+0100_GNB-1_-_2.xml"


def test_begin_and_end_have_their_own_offsets_where_the_clock_changes(make_report):
    report = make_report(start=datetime(2026, 10, 25, 0, 45, tzinfo=UTC))
    assert file_name(report, NameStyle()) == "A20261025.0245+0200-0200+0100_GNB-1.xml"
    later = make_report(start=datetime(2026, 10, 25, 1, 45, tzinfo=UTC))
    assert file_name(later, NameStyle()) == "A20261025.0245+0100-0300+0100_GNB-1.xml"


def test_job_and_unique_id_follow_the_style(make_report):
    style = NameStyle(unique_id="ManagedElement={gnb}", job_id="7", end_date_always=True)
    name = file_name(make_report(), style)
    assert name == "A20261102.0100+0100-20261102.0115+0100_-7_ManagedElement=GNB-1.xml"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kathmandu"])
def test_names_of_every_dialect_follow_the_grammar(make_report, dialect, count, zone):
    name = DIALECTS[dialect].file_name(make_report(count, time_zone=zone, repeat=2))
    match = GRAMMAR.fullmatch(name)
    assert match is not None, name
    assert match["kind"] == ("A" if count == 1 else "C")
    assert match["repeat"] == "2"
    assert ":" not in name
