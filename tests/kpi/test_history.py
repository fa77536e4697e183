"""Files become one window a cell, with what was asked for and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kpi.catalogue import load_catalogue
from kpi.errors import NothingSelectedError, UnreadableFileError
from kpi.history import Selection, load_windows, parse_columns
from kpi.options import select
from kpi.readers import ColumnMapping

TABLE = """timestamp,cell_id,RRU.PrbTotDl,RRU.PrbTotUl
2026-01-05T00:00:00Z,a/1,10,1
2026-01-05T01:00:00Z,a/1,20,2
2026-01-05T03:00:00Z,a/1,40,4
2026-01-05T00:00:00Z,b/1,50,5
2026-01-05T01:00:00Z,b/1,60,6
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "cells.csv"
    path.write_text(TABLE, encoding="utf-8")
    return path


def load(*paths: Path, on_error=None, **selection):
    return load_windows(
        paths, Selection(**selection), load_catalogue(), on_error or (lambda _: None)
    )


def test_each_cell_is_one_window_on_a_regular_grid(table):
    first, second = load(table)
    assert (first.cell, second.cell) == ("a/1", "b/1")
    assert first.kpis == ("RRU.PrbTotDl", "RRU.PrbTotUl")
    np.testing.assert_array_equal(first.values[0], [10, 20, np.nan, 40])
    assert first.start.isoformat() == "2026-01-05T00:00:00+00:00"


@pytest.mark.parametrize(
    ("selection", "cells"),
    [
        ({"cells": ("a*",)}, ["a/1"]),
        ({"exclude": ("a*",)}, ["b/1"]),
        ({"cells": ("*1",), "exclude": ("b*",)}, ["a/1"]),
    ],
)
def test_cells_are_selected_by_patterns(table, selection, cells):
    assert [window.cell for window in load(table, **selection)] == cells


def test_kpis_are_selected_whatever_their_case(table):
    assert {window.kpis for window in load(table, kpis=("rru.prbtotul",))} == {("RRU.PrbTotUl",)}


def test_a_bad_file_among_good_ones_is_named_and_the_others_are_used(table):
    (table.parent / "bad.xml").write_text("<measCollecFile>", encoding="utf-8")
    errors: list[UnreadableFileError] = []
    windows = load(table.parent, on_error=errors.append)
    assert len(windows) == 2
    assert [Path(error.path).name for error in errors] == ["bad.xml"]


def test_a_selection_that_keeps_nothing_says_what_was_asked(table):
    with pytest.raises(NothingSelectedError, match=r"RRU\.PrbUsedDl"):
        load(table, kpis=("RRU.PrbUsedDl",))


def test_several_paths_are_joined(table, tmp_path):
    later = tmp_path / "later.csv"
    later.write_text(
        "timestamp,cell_id,RRU.PrbTotDl\n"
        "2026-01-05T04:00:00Z,a/1,50\n2026-01-05T05:00:00Z,a/1,60\n",
        encoding="utf-8",
    )
    first, _ = load(table, later)
    np.testing.assert_array_equal(first.values[0], [10, 20, np.nan, 40, 50, 60])


def test_columns_are_parsed_from_one_option():
    assert parse_columns("timestamp=date, cell=site,stamp=end") == ColumnMapping(
        timestamp="date", cell="site", stamp="end"
    )
    assert parse_columns("period_seconds=900").period_seconds == 900


@pytest.mark.parametrize(
    "text", ["date", "when=date", "cell=", "stamp=middle", "period_seconds=x", "period_seconds=nan"]
)
def test_a_bad_column_option_is_refused(text):
    with pytest.raises(ValueError, match="expected"):
        parse_columns(text)


def test_windows_bear_the_country_that_was_selected(table):
    assert {window.country for window in load(table, country="ES-CT")} == {"ES-CT"}
    assert {window.country for window in load(table)} == {None}


def test_options_become_a_selection():
    columns = "timestamp=date"
    found = select(["A"], ["*"], None, 900.0, "Europe/Madrid", True, columns, "ES")
    assert found.country == "ES"
    assert found.reading.time_zone == "Europe/Madrid"
    assert (found.kpis, found.cells, found.exclude) == (("A",), ("*",), ())
