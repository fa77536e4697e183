"""Observations in columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpi.observation import ObservationBatch

names = st.sampled_from(["a", "b", "c"])
rows = st.lists(st.tuples(names, names, st.integers(0, 10), st.floats(0, 9)), max_size=8)


def batch(entries, arrival_ms=0):
    cells, kpis, ends, values = zip(*entries, strict=True) if entries else ((), (), (), ())
    return ObservationBatch.from_lists(cells, kpis, ends, 1000, values, arrival_ms=arrival_ms)


def entries_of(found):
    return [
        (found.cells[c], found.kpis[k], int(end), float(value))
        for c, k, end, value in zip(
            found.cell_index, found.kpi_index, found.period_end_ms, found.values, strict=True
        )
    ]


@settings(deadline=None)
@given(rows)
def test_lists_are_kept_with_each_name_once(entries):
    found = batch(entries)
    assert entries_of(found) == entries
    assert len(found) == len(entries)
    assert len(set(found.cells)) == len(found.cells)


@settings(deadline=None)
@given(st.lists(rows, min_size=1, max_size=4))
def test_concatenated_batches_hold_all_samples_in_order(parts):
    batches = [batch(part, arrival_ms) for arrival_ms, part in enumerate(parts)]
    whole = ObservationBatch.concatenate(batches)
    assert entries_of(whole) == [entry for part in parts for entry in part]
    assert whole.arrival_ms == len(parts) - 1
    assert len(set(whole.kpis)) == len(whole.kpis)


def test_nothing_cannot_be_concatenated():
    with pytest.raises(ValueError, match="at least one batch"):
        ObservationBatch.concatenate([])


def test_blank_value_is_missing_not_zero():
    found = ObservationBatch.from_lists("a", "k", [0], 1000, [None], arrival_ms=0)
    assert np.isnan(found.values[0])
    assert not found.suspect[0]


def test_samples_may_have_periods_and_doubts_of_their_own():
    found = ObservationBatch.from_lists(
        "aa", "kk", [0, 0], [1000, 60_000], [1.0, 2.0], [False, True], arrival_ms=0
    )
    taken = found.take(found.suspect)
    assert taken.period_ms.tolist() == [60_000]
    assert taken.values.tolist() == [2.0]
    assert taken.cells == found.cells


def test_columns_must_have_one_length():
    with pytest.raises(ValueError, match="expected 2 entries in period_end_ms"):
        ObservationBatch.from_lists("aa", "kk", [0], 1000, [1.0, 2.0], arrival_ms=0)
