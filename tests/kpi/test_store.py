"""The bounded store: merging, limits, windows, memory."""

from __future__ import annotations

import logging
import random
import threading
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpi.catalogue import Catalogue, Kpi, KpiKind
from kpi.errors import CatalogueError, UnknownCellError
from kpi.grid import DAY_MS, difference_counter
from kpi.observation import ObservationBatch
from kpi.ring import RingPool
from kpi.store import CellSummary, KpiStore, MergeResult, StoreLimits
from kpi.window import PlannedEvent

QUARTER_MS = 900_000
NOON_MS = 1_793_534_400_000  # 2026-11-01T12:00Z
CATALOGUE = Catalogue(
    version="test",
    kpis={
        "prb": Kpi("prb", "%", KpiKind.PERCENT, 0.0, 100.0),
        "bytes": Kpi("bytes", "B", KpiKind.VOLUME, 0.0, cumulative=True),
    },
    _canonical={"prb": "prb", "load": "prb", "bytes": "bytes"},
)


def make(**limits):
    return KpiStore(StoreLimits(**({"history_steps": 8} | limits)), CATALOGUE)


def batch(rows, *, period_ms=QUARTER_MS, arrival_ms=NOON_MS + DAY_MS, suspect=None):
    """Samples from (cell, kpi, periods after noon, value) rows."""
    cells, kpis, steps, values = zip(*rows, strict=True) if rows else ((), (), (), ())
    ends = [NOON_MS + round(step * period_ms) for step in steps]
    return ObservationBatch.from_lists(
        cells, kpis, ends, period_ms, values, suspect, arrival_ms=arrival_ms
    )


def contents(store):
    """Everything that a store answers, comparable."""
    found = []
    for summary in store.cells(limit=10**6):
        window = store.window(summary.cell, step_ms=summary.step_ms)
        found.append((summary, window.kpis, window.start_ms, window.values.tobytes()))
    return found


samples = st.tuples(
    st.sampled_from("abc"),
    st.sampled_from(["prb", "x", "bytes"]),
    st.integers(0, 20),
    st.sampled_from([QUARTER_MS, 60_000]),
)


def built(rows):
    """A batch of identities, each with a value that follows from it."""
    return ObservationBatch.from_lists(
        [row[0] for row in rows],
        [row[1] for row in rows],
        [NOON_MS + row[2] * row[3] for row in rows],
        [row[3] for row in rows],
        [None if mixed(row) % 5 == 0 else float(mixed(row) % 100) for row in rows],
        arrival_ms=NOON_MS,
    )


def mixed(row):
    return zlib.crc32(repr(row).encode())


@settings(deadline=None)
@given(st.lists(samples, unique=True, min_size=1, max_size=40), st.randoms(), st.integers(1, 6))
def test_any_split_and_order_of_distinct_samples_gives_the_same_store(rows, chance, parts):
    whole = make()
    whole.merge(built(rows))
    split = make()
    shuffled = list(rows)
    chance.shuffle(shuffled)
    for part in range(parts):
        split.merge(built(shuffled[part::parts]))
    assert contents(split) == contents(whole)


@settings(deadline=None)
@given(st.lists(samples, min_size=1, max_size=40))
def test_merging_twice_is_merging_once(rows):
    store = make()
    first = store.merge(built(rows))
    once = contents(store)
    again = store.merge(built(rows))
    assert contents(store) == once
    assert again.accepted + again.expired == first.accepted + first.expired == len(rows)


def test_a_repeated_batch_counts_as_merged():
    store = make()
    rows = [("a", "prb", i, float(i)) for i in range(4)]
    assert store.merge(batch(rows)) == MergeResult(accepted=4, merged=0, late=0)
    assert store.merge(batch(rows)) == MergeResult(accepted=4, merged=4, late=3)


def test_latest_arrival_wins_even_when_it_is_blank():
    store = make()
    store.merge(batch([("a", "prb", 0, 1.0), ("a", "prb", 1, 2.0)]))
    store.merge(batch([("a", "prb", 0, 5.0), ("a", "prb", 1, None)]))
    np.testing.assert_array_equal(store.window("a").values, [[5.0, np.nan]])


def test_last_of_equal_samples_in_a_batch_wins():
    store = make()
    result = store.merge(batch([("a", "prb", 0, 1.0), ("a", "prb", 0.01, 2.0)]))
    assert result == MergeResult(accepted=2, merged=1, late=0)
    assert store.window("a").values.tolist() == [[2.0]]


def test_late_samples_are_merged_within_the_history_and_dropped_beyond_it():
    store = make()
    store.merge(batch([("a", "prb", 20, 1.0)]))
    result = store.merge(batch([("a", "prb", 13, 2.0), ("a", "prb", 12, 3.0)]))
    assert result == MergeResult(accepted=1, merged=0, late=2, expired=1)
    window = store.window("a")
    assert window.steps == 8
    assert np.nansum(window.values) == 3.0


def test_a_batch_longer_than_the_history_keeps_its_end():
    store = make()
    result = store.merge(batch([("a", "prb", i, float(i)) for i in range(20)]))
    assert (result.accepted, result.expired) == (8, 12)
    assert store.window("a").values.tolist() == [[float(i) for i in range(12, 20)]]


def test_window_aligns_its_kpis_on_the_newest_sample():
    store = make()
    store.merge(batch([("a", "x", 2, 3.0), ("a", "prb", 0, 1.0), ("a", "prb", 1, 2.0)]))
    window = store.window("a", time_zone="Europe/Madrid", events=[PlannedEvent(1, 2)])
    assert window.kpis == ("prb", "x")
    np.testing.assert_array_equal(window.values, [[1, 2, np.nan], [np.nan, np.nan, 3]])
    assert window.end_ms == NOON_MS + 2 * QUARTER_MS
    assert window.values.dtype == np.float32
    assert (window.time_zone, window.events) == ("Europe/Madrid", (PlannedEvent(1, 2),))


def test_window_gives_chosen_kpis_in_their_order_and_any_spelling():
    store = make()
    store.merge(batch([("a", "x", 0, 3.0), ("a", "prb", 0, 1.0), ("a", "y", 1, 2.0)]))
    window = store.window("a", kpis=["x", "Load"])
    assert window.kpis == ("x", "prb")
    assert window.end_ms == NOON_MS + QUARTER_MS
    np.testing.assert_array_equal(window.values, [[3, np.nan], [1, np.nan]])


def test_window_without_kpis_has_no_rows():
    store = make()
    store.merge(batch([("a", "x", 0, 3.0)]))
    assert store.window("a", kpis=()).values.shape == (0, 1)


def test_stored_kpis_are_named_as_in_the_catalogue():
    store = make()
    store.merge(batch([("a", "LOAD", 0, 1.0), ("a", "prb", 1, 2.0)]))
    assert store.window("a").kpis == ("prb",)
    assert store.window("a").values.tolist() == [[1.0, 2.0]]


def test_finest_step_with_a_value_is_the_default():
    store = make()
    store.merge(batch([("a", "prb", 0, 1.0)]))
    store.merge(batch([("a", "prb", 0, 2.0)], period_ms=1000))
    store.merge(batch([("a", "prb", 0, 3.0)], period_ms=10, suspect=[True]))
    assert store.window("a").step_ms == 1000
    assert store.window("a", step_ms=QUARTER_MS).values.tolist() == [[1.0]]


def test_a_kpi_is_found_at_a_coarser_step_when_the_finest_lacks_it():
    store = make()
    store.merge(batch([("a", "x", 0, 1.0)]))
    store.merge(batch([("a", "prb", 0, 2.0)], period_ms=1000))
    assert store.window("a", kpis=["x"]).step_ms == QUARTER_MS


def test_a_dead_cell_has_a_window_of_one_missing_sample():
    store = make()
    store.merge(batch([("a", "prb", i, None) for i in range(3)]))
    window = store.window("a")
    assert (window.steps, window.missing_ratio) == (1, 1.0)
    assert window.end_ms == NOON_MS + 2 * QUARTER_MS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cell": "z"}, "no cell 'z'"),
        ({"cell": "a", "step_ms": 5}, r"at a step of 5 ms; it has \[900000\]"),
        ({"cell": "a", "kpis": ["y"]}, r"no y of 'a'; it has \['prb'\]"),
    ],
)
def test_what_the_store_does_not_hold_is_named(arguments, message):
    store = make()
    store.merge(batch([("a", "prb", 0, 1.0)]))
    with pytest.raises(UnknownCellError, match=message):
        store.window(**arguments)


def test_suspect_values_are_masked_unless_they_are_to_be_kept():
    for keep_suspect, value in ((False, np.nan), (True, 7.0)):
        store = make(keep_suspect=keep_suspect)
        store.merge(batch([("a", "prb", 0, 7.0)], suspect=[True]))
        np.testing.assert_array_equal(store.window("a").values, [[value]])


def test_cumulative_kpis_become_amounts_in_full_precision():
    store = make()
    readings = [1e12, 1e12 + 3, 1e12 + 7, 5.0, None, 9.0, 10.0]
    rows = [("a", "bytes", i, reading) for i, reading in enumerate(readings)]
    random.Random(1).shuffle(rows)
    for row in rows:
        store.merge(batch([row, ("a", "prb", *row[2:3], 1.0)]))
    expected = difference_counter(np.array(readings, np.float64))
    window = store.window("a")
    assert window.kpis == ("bytes", "prb")
    np.testing.assert_array_equal(window.values[0], expected.astype(np.float32))
    assert window.values[1].tolist() == [1.0] * 7


def test_a_wrong_clock_spoils_its_own_cell_alone():
    store = make()
    rows = [(cell, "prb", i, 1.0) for cell in "ab" for i in range(4)]
    store.merge(batch(rows))
    store.merge(batch([("a", "prb", 90, 2.0)]))
    assert np.nansum(store.window("a").values) == 2.0
    assert store.window("b").values.tolist() == [[1.0] * 4]


def test_periods_too_far_in_the_future_are_refused_with_the_clock_as_reason():
    limits = StoreLimits(max_future_seconds=3600)
    store = KpiStore(limits, CATALOGUE, wall_clock=lambda: NOON_MS / 1000)
    rows = [("a", "prb", 4, 1.0), ("a", "prb", 5, 2.0)]
    result = store.merge(batch(rows, arrival_ms=NOON_MS - DAY_MS))
    assert (result.accepted, result.rejected[0].count) == (1, 1)
    assert "max_future_seconds=3600" in result.rejected[0].reason


def test_a_batch_that_says_a_later_arrival_is_taken_at_its_word():
    store = KpiStore(StoreLimits(), CATALOGUE, wall_clock=lambda: 0.0)
    assert store.merge(batch([("a", "prb", 4, 1.0)], arrival_ms=NOON_MS)).accepted == 1
    assert store.merge(batch([("a", "prb", 5, 1.0)], arrival_ms=0)).accepted == 0


def test_each_reason_is_given_once_with_its_number():
    store = make(snap_tolerance_ratio=0.1)
    rows = [
        ("a", "prb", 0, 1.0),
        ("b", "prb", 1, 1835.0),
        ("b", "x", 1, float("inf")),
        ("c", "x", 0.3, 1.0),
    ]
    result = store.merge(batch(rows))
    assert result.accepted == 1
    assert [(r.path, r.count) for r in result.rejected] == [("c", 1), ("b", 2)]
    off_grid, impossible = (r.reason for r in result.rejected)
    assert "0.1 periods off the grid" in off_grid
    assert "got 1835 for prb (0.0 to 100.0)" in impossible
    assert [summary.cell for summary in store.cells()] == ["a"]


def test_new_cells_beyond_the_limit_are_refused_loudly_and_known_ones_merged(caplog):
    now = [0.0]
    limits = StoreLimits(max_cells=2, history_steps=8)
    store = KpiStore(limits, CATALOGUE, clock=lambda: now[0])
    store.merge(batch([("a", "prb", 0, 1.0)]))
    rows = [(cell, kpi, 1, 2.0) for cell in "dabc" for kpi in ("prb", "x")]
    result = store.merge(batch(rows))
    assert result.accepted == 4
    (rejection,) = result.rejected
    assert (rejection.path, rejection.count) == ("b", 4)
    assert "2 new cells refused: the store holds 2 of max_cells=2" in rejection.reason
    assert store.refused_cells == 2
    assert [summary.cell for summary in store.cells()] == ["a", "d"]
    store.merge(batch(rows))
    assert store.refused_cells == 4
    assert caplog.text.count("new_cells_refused=2") == 1
    now[0] = 61.0
    with caplog.at_level(logging.WARNING):
        store.merge(batch(rows))
    assert caplog.text.count("new_cells_refused=2") == 2


def test_kpis_beyond_the_limit_of_a_cell_are_refused():
    store = make(max_kpis_per_cell=1)
    store.merge(batch([("a", "prb", 0, 1.0)]))
    result = store.merge(batch([("a", kpi, 1, 1.0) for kpi in ("bytes", "prb")]))
    assert (result.accepted, result.rejected[0].count) == (1, 1)
    assert "a KPI beyond max_kpis_per_cell=1" in result.rejected[0].reason
    assert store.window("a").kpis == ("prb",)


def test_kpis_that_the_catalogue_does_not_know_take_at_most_half_of_a_cell():
    store = make(max_kpis_per_cell=5)
    result = store.merge(batch([(cell, kpi, 0, 1.0) for kpi in "xyz" for cell in "ab"]))
    assert (result.accepted, result.rejected[0].count) == (4, 2)
    assert "of max_kpis_per_cell=5 such may take at most 2" in result.rejected[0].reason
    later = store.merge(batch([("a", kpi, 1, 1.0) for kpi in ("z", "prb", "bytes", "y")]))
    assert (later.accepted, later.rejected[0].count) == (3, 1)
    assert store.window("a").kpis == ("bytes", "prb", "x", "y")
    assert store.window("b").kpis == ("x", "y")


def test_each_step_of_a_cell_has_room_for_as_many_unknown_kpis():
    store = make(max_kpis_per_cell=2)
    for period_ms in (QUARTER_MS, 60_000):
        result = store.merge(batch([("a", kpi, 0, 1.0) for kpi in "xy"], period_ms=period_ms))
        assert (result.accepted, result.rejected[0].count) == (1, 1)


def test_known_kpis_come_first_in_a_batch_that_has_too_many():
    store = make(max_kpis_per_cell=2)
    names = ("x", "y", "LOAD", "z", "bytes")
    result = store.merge(batch([("a", kpi, 0, 1.0) for kpi in names]))
    assert (result.accepted, result.rejected[0].count) == (2, 3)
    assert store.window("a").kpis == ("bytes", "prb")


def test_a_cell_with_room_for_one_kpi_keeps_it_for_a_known_one():
    store = make(max_kpis_per_cell=1)
    result = store.merge(batch([("a", "x", 0, 1.0)]))
    assert (result.accepted, len(store)) == (0, 0)
    assert "none where max_kpis_per_cell is 1" in result.rejected[0].reason
    assert store.merge(batch([("a", "prb", 0, 1.0)])).accepted == 1


KNOWN = [f"known{number}" for number in range(3)]


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.lists(st.sampled_from([*KNOWN, *"uvwxyz"]), min_size=1, max_size=9),
        min_size=1,
        max_size=6,
    ),
    st.integers(5, 7),
    st.integers(1, 4),
)
def test_known_kpis_up_to_half_of_a_cell_always_get_in(parts, slots, names):
    catalogue = Catalogue("test", {name: Kpi(name, "1", KpiKind.GAUGE) for name in KNOWN})
    limits = StoreLimits(history_steps=4, max_kpis_per_cell=slots, max_kpi_names=names)
    store = KpiStore(limits, catalogue)
    for step, part in enumerate(parts):
        result = store.merge(batch([("a", kpi, step, 1.0) for kpi in part]))
        held = set(store.window("a").kpis) if len(store) else set()
        assert set(part) & set(KNOWN) <= held
        assert len(held - set(KNOWN)) <= min(slots // 2, names)
        refused = sum(rejection.count for rejection in result.rejected)
        assert refused == sum(kpi not in held for kpi in part)


def test_kpi_names_beyond_the_limit_of_the_store_are_refused():
    store = make(max_kpi_names=2)
    result = store.merge(batch([(cell, kpi, 0, 1.0) for cell in "ab" for kpi in "xyz"]))
    assert (result.accepted, result.rejected[0].count) == (4, 2)
    assert "max_kpi_names=2" in result.rejected[0].reason


def test_names_of_the_catalogue_do_not_count_against_the_limit():
    store = make(max_kpi_names=1)
    store.merge(batch([("a", "x", 0, 1.0)]))
    result = store.merge(batch([("a", kpi, 1, 1.0) for kpi in ("load", "bytes", "x", "y")]))
    assert (result.accepted, result.rejected[0].count) == (3, 1)


def test_names_that_no_cell_has_room_for_use_up_nothing():
    store = make(max_kpi_names=5, max_kpis_per_cell=2, max_cells=2)
    assert store.merge(batch([("a", kpi, 0, 1.0) for kpi in "stuv"])).accepted == 1
    store.merge(batch([("b", "prb", 0, 1.0)]))
    assert store.merge(batch([("c", kpi, 0, 1.0) for kpi in "wxyz"])).accepted == 0
    rows = [("b", kpi, 0, 1.0) for kpi in "wxyz"]
    result = store.merge(batch(rows))
    assert result.accepted == 1
    assert "such may take at most 1" in result.rejected[0].reason
    assert store.window("b").kpis == ("prb", "w")


def test_a_new_kpi_has_its_own_name_where_others_of_the_batch_were_refused():
    store = make(max_kpis_per_cell=2)
    store.merge(batch([("a", "x", 0, 1.0), ("a", "y", 0, 2.0), ("b", "z", 0, 3.0)]))
    store.merge(batch([("b", "y", 1, 4.0), ("b", "z", 1, 5.0), ("c", "z", 0, 6.0)]))
    assert [(s.cell, s.kpis) for s in store.cells()] == [
        ("a", ("x",)),
        ("b", ("z",)),
        ("c", ("z",)),
    ]
    assert store.window("b").values.tolist() == [[3.0, 5.0]]


def test_a_catalogue_may_have_as_many_kpis_as_can_be_numbered_and_no_more():
    entry = Kpi("any", "1", KpiKind.GAUGE)
    names = [str(number) for number in range(32_768)]
    store = KpiStore(StoreLimits(), Catalogue("test", dict.fromkeys(names[1:], entry)))
    store.merge(batch([("a", "x", 0, 1.0), ("a", names[-1], 0, 2.0)]))
    assert store.window("a").kpis == (names[-1], "x")
    with pytest.raises(CatalogueError, match="at most 32767 KPIs, got 32768"):
        KpiStore(StoreLimits(), Catalogue("test", dict.fromkeys(names, entry)))


def test_a_cell_with_refused_kpis_only_is_not_held():
    store = make(max_kpi_names=1)
    result = store.merge(batch([("a", "x", 0, 1.0), ("b", "y", 0, 1.0)]))
    assert result.accepted == 1
    assert [summary.cell for summary in store.cells()] == ["a"]


def test_periods_beyond_the_limit_of_a_cell_are_refused():
    store = make(max_steps_per_cell=2)
    for period_ms in (1000, 60_000):
        store.merge(batch([("a", "prb", 0, 1.0)], period_ms=period_ms))
    result = store.merge(batch([("a", "prb", 0, 1.0)]))
    assert result.accepted == 0
    assert "max_steps_per_cell=2" in result.rejected[0].reason
    assert [summary.step_ms for summary in store.cell("a")] == [1000, 60_000]


@pytest.mark.parametrize("name", ["", "x" * 1025, "\ud800"])
def test_names_that_cannot_be_kept_are_refused(name):
    store = make()
    result = store.merge(batch([(name, "prb", 0, 1.0), ("a", name, 0, 1.0), ("a", "x", 0, 1.0)]))
    assert (result.accepted, len(result.rejected)) == (1, 2)
    assert len(store) == 1


def test_cells_are_given_in_pages_ordered_by_name():
    store = make()
    store.merge(batch([(cell, "prb", i, 1.0) for i, cell in enumerate("dbca")]))
    store.merge(batch([("b", "x", 0, 1.0)], period_ms=1000))
    first = store.cells(limit=2)
    assert [(s.cell, s.step_ms) for s in first] == [
        ("a", QUARTER_MS),
        ("b", 1000),
        ("b", QUARTER_MS),
    ]
    assert [s.cell for s in store.cells(after="b")] == ["c", "d"]
    store.merge(batch([("bb", "prb", 0, 1.0)]))
    assert [s.cell for s in store.cells(after="b")] == ["bb", "c", "d"]


def test_a_summary_says_what_is_held_from_when_to_when():
    store = make()
    store.merge(batch([("a", "x", 1, 1.0), ("a", "prb", 3, 1.0)]))
    assert store.cell("a") == [
        CellSummary("a", ("prb", "x"), QUARTER_MS, NOON_MS, NOON_MS + 3 * QUARTER_MS)
    ]
    with pytest.raises(UnknownCellError):
        store.cell("z")


@settings(deadline=None)
@given(st.lists(st.lists(samples, min_size=1, max_size=25), min_size=1, max_size=4))
def test_a_summary_agrees_with_the_window_of_its_step(arrivals):
    store = make()
    for rows in arrivals:
        store.merge(built(rows))
    for summary in store.cells():
        window = store.window(summary.cell, step_ms=summary.step_ms)
        assert summary.kpis == window.kpis
        assert (summary.first_ms, summary.last_ms) == (window.start_ms, window.end_ms)


def test_summaries_copy_no_histories(monkeypatch):
    store = make(history_steps=64)
    store.merge(batch([("a", "prb", i, 1.0) for i in range(40, 60)]))
    monkeypatch.setattr(RingPool, "unroll", None)
    (summary,) = store.cells()
    assert summary.first_ms == NOON_MS + 39 * QUARTER_MS


def test_newest_is_the_latest_end_of_a_stored_sample():
    store = make()
    assert store.newest_ms is None
    store.merge(batch([("a", "prb", 3, 1.0), ("b", "prb", 1, 1.0)]))
    store.merge(batch([("b", "prb", 2, 1.0)]))
    assert store.newest_ms == NOON_MS + 3 * QUARTER_MS


def test_an_empty_batch_changes_nothing():
    store = make()
    assert store.merge(batch([])) == MergeResult(0, 0, 0)
    assert (len(store), store.cells()) == (0, [])
    store.close()


def test_stored_bytes_are_the_stated_bytes_of_what_is_held():
    store = make(max_kpis_per_cell=4)
    limits = store.limits
    assert store.stored_bytes == 0
    store.merge(batch([("a", "prb", 0, 1.0), ("a", "x", 0, 1.0), ("b", "prb", 0, 1.0)]))
    held = store.stated_bytes_per_cell(2) + store.stated_bytes_per_cell(1)
    assert store.stored_bytes == held
    store.merge(batch([("a", "prb", i, 2.0) for i in range(9)]))
    assert store.stored_bytes == held
    for period_ms in (QUARTER_MS, 60_000):
        rows = [("c", kpi, 0, 1.0) for kpi in ("prb", "bytes")]
        store.merge(batch(rows, period_ms=period_ms))
    assert store.stored_bytes == held + limits.stated_bytes_per_cell(2, cumulative_kpis=1, steps=2)


def test_refused_samples_take_no_bytes():
    store = make(max_cells=1, max_kpis_per_cell=2)
    store.merge(batch([("a", kpi, 0, 1.0) for kpi in "xyz"]))
    store.merge(batch([("b", "prb", 0, 1.0)]))
    assert store.stored_bytes == store.stated_bytes_per_cell(1)


def test_threads_may_merge_and_read_at_once():
    store = make(history_steps=64)
    store.merge(batch([("0", "prb", 0, 0.0)]))
    failures = []

    def work(number):
        try:
            for step in range(60):
                store.merge(batch([(str(number), "prb", step, float(step))]))
                store.window("0")
                store.cells()
        except Exception as error:  # the assertion below names it
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for number in range(4):
        assert store.window(str(number)).values.tolist() == [[float(step) for step in range(60)]]
