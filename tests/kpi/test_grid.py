"""The regular grid: snapping, counters, impossible values, and windows without a store."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpi.catalogue import Catalogue, Kpi, KpiKind
from kpi.grid import (
    DAY_MS,
    LATEST_MS,
    LONGEST_PERIOD_MS,
    WEEK_MS,
    difference_counter,
    grid_end_ms,
    grid_index,
    impossible,
    period_end_ms,
    to_windows,
)
from kpi.observation import ObservationBatch

QUARTER_MS = 900_000


def snap_ms(period_end_ms, period_ms, tolerance_ratio=0.5):
    """Where the grid puts period ends, and which of them are near enough."""
    index, on_grid = grid_index(period_end_ms, period_ms, tolerance_ratio)
    return np.where(on_grid, grid_end_ms(index, period_ms), period_end_ms), on_grid


NOON_MS = int(datetime(2026, 11, 1, 12, tzinfo=UTC).timestamp() * 1000)
CATALOGUE = Catalogue(
    version="test",
    kpis={
        "prb": Kpi("prb", "%", KpiKind.PERCENT, 0.0, 100.0),
        "power": Kpi("power", "dBm", KpiKind.GAUGE, -140.0, -40.0),
        "bytes": Kpi("bytes", "B", KpiKind.VOLUME, 0.0, 1000.0, cumulative=True),
    },
    _canonical={"prb": "prb", "load": "prb", "power": "power", "bytes": "bytes"},
)
periods = st.sampled_from([1000, 10_000, 60_000, QUARTER_MS, 3_600_000, DAY_MS, WEEK_MS])
stamps = st.integers(WEEK_MS, LATEST_MS - WEEK_MS)


def ms(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0) -> int:
    return round(datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp() * 1000)


def batch(rows, *, period_ms=QUARTER_MS, arrival_ms=NOON_MS, suspect=None):
    """Samples from (cell, kpi, period end, value) rows."""
    cells, kpis, ends, values = zip(*rows, strict=True)
    return ObservationBatch.from_lists(
        cells, kpis, ends, period_ms, values, suspect, arrival_ms=arrival_ms
    )


@settings(deadline=None)
@given(stamps, periods)
def test_snapping_moves_by_half_a_period_at_most_and_is_idempotent(end_ms, period_ms):
    snapped, on_grid = snap_ms([end_ms], period_ms)
    assert on_grid.all()
    assert abs(int(snapped[0]) - end_ms) * 2 <= period_ms
    again, _ = snap_ms(snapped, period_ms)
    assert again.tolist() == snapped.tolist()


@settings(deadline=None)
@given(stamps, periods)
def test_index_and_end_are_inverse_on_the_grid(end_ms, period_ms):
    index, _ = grid_index([end_ms], period_ms)
    end = grid_end_ms(index, period_ms)
    assert grid_index(end, period_ms)[0].tolist() == index.tolist()
    assert period_end_ms(int(index[0]), period_ms) == int(end[0])


@settings(deadline=None)
@given(stamps, periods, st.floats(0, 0.5))
def test_tolerance_is_the_distance_to_the_grid_in_periods(end_ms, period_ms, tolerance_ratio):
    snapped, on_grid = snap_ms([end_ms], period_ms, tolerance_ratio)
    nearest, _ = snap_ms([end_ms], period_ms)
    within = abs(int(nearest[0]) - end_ms) <= tolerance_ratio * period_ms
    assert bool(on_grid[0]) == within
    assert int(snapped[0]) == (int(nearest[0]) if within else end_ms)


def test_jitter_of_seconds_is_moved_to_the_quarter_hour():
    stamps_ms = [ms(2026, 8, 3, 14, 14, 30), ms(2026, 8, 3, 14, 15, 23)]
    snapped, on_grid = snap_ms(stamps_ms, QUARTER_MS, 0.1)
    assert snapped.tolist() == [ms(2026, 8, 3, 14, 15)] * 2
    assert on_grid.all()


def test_halfway_goes_to_the_later_period():
    snapped, _ = snap_ms([ms(2026, 8, 3, 14, 7, 30)], QUARTER_MS)
    assert snapped.tolist() == [ms(2026, 8, 3, 14, 15)]


def test_periods_of_each_sample_are_its_own():
    end_ms = ms(2026, 8, 3, 14, 20)
    snapped, _ = snap_ms([end_ms, end_ms], [QUARTER_MS, 3_600_000])
    assert snapped.tolist() == [ms(2026, 8, 3, 14, 15), ms(2026, 8, 3, 14)]


def test_weeks_end_on_monday_midnight():
    snapped, _ = snap_ms([ms(2026, 11, 30, 1)], WEEK_MS)
    assert snapped.tolist() == [ms(2026, 11, 30)]
    assert datetime(2026, 11, 30, tzinfo=UTC).weekday() == 0


@pytest.mark.parametrize(
    ("end_ms", "period_ms"),
    [
        (NOON_MS, 0),
        (NOON_MS, -QUARTER_MS),
        (NOON_MS, LONGEST_PERIOD_MS + 1),
        (-1, QUARTER_MS),
        (NOON_MS * 1000, QUARTER_MS),
        (-(2**63), QUARTER_MS),
        (2**63 - 1, 2**63 - 1),
    ],
)
def test_senseless_clocks_and_periods_are_off_the_grid_and_stay_as_they_are(end_ms, period_ms):
    snapped, on_grid = snap_ms([end_ms], [period_ms])
    assert not on_grid.any()
    assert snapped.tolist() == [end_ms]


@pytest.mark.parametrize(("month", "day", "quarters"), [(3, 29, 92), (10, 25, 100), (6, 1, 96)])
def test_a_local_day_with_a_clock_change_has_92_or_100_quarter_hours(month, day, quarters):
    zone = ZoneInfo("Europe/Madrid")
    start = datetime(2026, month, day, tzinfo=zone)
    begin_ms = round(start.timestamp() * 1000)
    end_ms = round((start + timedelta(days=1)).timestamp() * 1000)
    ends = range(begin_ms + QUARTER_MS, end_ms + 1, QUARTER_MS)
    rows = [("c", "prb", end, float(i % 100)) for i, end in enumerate(ends)]
    (window,) = to_windows([batch(rows)], catalogue=CATALOGUE, time_zone="Europe/Madrid")
    assert window.country is None
    assert window.steps == quarters
    assert window.missing_ratio == 0
    assert (window.start_ms, window.end_ms) == (begin_ms, end_ms)
    assert window.time_zone == "Europe/Madrid"


def test_counter_gives_amounts_and_a_decrease_counts_from_zero():
    amounts = difference_counter([10, 15, 15, 4, 6])
    np.testing.assert_array_equal(amounts, [np.nan, 5, 0, 4, 2])


def test_first_reading_after_a_gap_has_no_amount():
    amounts = difference_counter([10, np.nan, np.nan, 40, 45])
    np.testing.assert_array_equal(amounts, [np.nan, np.nan, np.nan, np.nan, 5])


def test_negative_reading_is_no_counter_reading():
    amounts = difference_counter([10, -1, 12, 13])
    np.testing.assert_array_equal(amounts, [np.nan, np.nan, np.nan, 1])


def test_counters_of_several_rows_do_not_mix():
    amounts = difference_counter([[1, 2], [10, 30]])
    np.testing.assert_array_equal(amounts, [[np.nan, 1], [np.nan, 20]])


@pytest.mark.parametrize("length", [0, 1])
def test_short_counters_have_no_amounts(length):
    assert np.isnan(difference_counter(np.ones(length))).sum() == length


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e6), max_size=30))
def test_amounts_add_up_to_the_readings_of_a_counter_without_resets(amounts):
    readings = np.concatenate([[0.0], np.cumsum(amounts)])
    np.testing.assert_allclose(difference_counter(readings)[1:], amounts, atol=1e-6)


@pytest.mark.parametrize(
    ("kpi", "value", "expected"),
    [
        ("prb", 0.0, False),
        ("prb", 100.3, False),
        ("prb", 101.5, True),
        ("prb", -1.0, True),
        ("power", -140.5, False),
        ("power", -142.0, True),
        ("bytes", 1e12, False),
        ("bytes", -5.0, True),
        ("unknown", -1e30, False),
        ("unknown", 1e39, True),
        ("unknown", float("inf"), True),
        ("bytes", float("inf"), True),
        ("prb", None, False),
    ],
)
def test_impossible_values_are_found_by_the_limits_of_the_catalogue(kpi, value, expected):
    assert impossible(batch([("c", kpi, NOON_MS, value)]), CATALOGUE).tolist() == [expected]


def test_windows_have_gaps_as_nan_and_begin_at_the_begin_of_the_first_period():
    rows = [
        ("b", "prb", NOON_MS, 1.0),
        ("b", "prb", NOON_MS + 3 * QUARTER_MS, 4.0),
        ("a", "power", NOON_MS, -80.0),
    ]
    first, second = to_windows([batch(rows)], catalogue=CATALOGUE)
    assert (first.cell, first.kpis) == ("a", ("power",))
    assert second.start_ms == NOON_MS - QUARTER_MS
    assert second.values.dtype == np.float32
    np.testing.assert_array_equal(second.values, [[1, np.nan, np.nan, 4]])


def test_a_hole_of_a_day_is_96_missing_quarter_hours():
    rows = [("c", "prb", NOON_MS, 1.0), ("c", "prb", NOON_MS + DAY_MS + QUARTER_MS, 2.0)]
    (window,) = to_windows([batch(rows)], catalogue=CATALOGUE)
    assert window.steps == 98
    assert np.isnan(window.values).sum() == 96


def test_latest_arrival_wins_whatever_the_order_of_the_batches():
    early = batch([("c", "prb", NOON_MS, 1.0)], arrival_ms=NOON_MS)
    late = batch([("c", "prb", NOON_MS + 400, 2.0)], arrival_ms=NOON_MS + 1)
    for batches in ([early, late], [late, early]):
        (window,) = to_windows(batches, catalogue=CATALOGUE)
        assert window.values.tolist() == [[2.0]]


def test_last_of_equal_samples_in_a_batch_wins():
    rows = [("c", "prb", NOON_MS, float(value)) for value in (1, 2, 3)]
    (window,) = to_windows([batch(rows)], catalogue=CATALOGUE)
    assert window.values.tolist() == [[3.0]]


@pytest.mark.parametrize(("keep_suspect", "value"), [(False, np.nan), (True, 7.0)])
def test_suspect_values_are_masked_unless_they_are_to_be_kept(keep_suspect, value):
    samples = batch([("c", "prb", NOON_MS, 7.0)], suspect=[True])
    (window,) = to_windows([samples], catalogue=CATALOGUE, keep_suspect=keep_suspect)
    np.testing.assert_array_equal(window.values, [[value]])


def test_cumulative_kpis_become_amounts_in_full_precision():
    total = 1e12
    rows = [("c", "bytes", NOON_MS + i * QUARTER_MS, total + 3 * i) for i in range(3)]
    (window,) = to_windows([batch(rows)], catalogue=CATALOGUE)
    np.testing.assert_array_equal(window.values, [[np.nan, 3, 3]])


def test_finest_step_of_each_cell_is_used_alone():
    fine = batch([("a", "prb", NOON_MS, 1.0)], period_ms=1000)
    coarse = batch([("a", "power", NOON_MS, -80.0), ("b", "prb", NOON_MS, 2.0)])
    first, second = to_windows([coarse, fine], catalogue=CATALOGUE)
    assert (first.step_ms, first.kpis) == (1000, ("prb",))
    assert second.step_ms == QUARTER_MS


def test_a_chosen_step_leaves_out_cells_without_it():
    fine = batch([("a", "prb", NOON_MS, 1.0)], period_ms=1000)
    coarse = batch([("b", "prb", NOON_MS, 2.0)])
    (window,) = to_windows([fine, coarse], catalogue=CATALOGUE, step_ms=QUARTER_MS)
    assert window.cell == "b"


def test_a_cut_off_suspect_period_does_not_become_the_step():
    cut_off = batch([("c", "prb", NOON_MS, 1.0)], period_ms=420_000, suspect=[True])
    (window,) = to_windows([cut_off, batch([("c", "prb", NOON_MS, 2.0)])], catalogue=CATALOGUE)
    assert window.step_ms == QUARTER_MS


def test_a_dead_cell_has_a_window_of_missing_values():
    (window,) = to_windows([batch([("c", "prb", NOON_MS, None)])], catalogue=CATALOGUE)
    assert window.missing_ratio == 1


def test_stamps_years_apart_keep_the_newest_steps_only():
    ends = (ms(2016, 1, 1), NOON_MS - 50_000, NOON_MS - 49_000, NOON_MS)
    rows = [("c", "prb", end, 2.0) for end in ends]
    (window,) = to_windows([batch(rows, period_ms=1000)], catalogue=CATALOGUE, max_steps=50)
    assert window.steps == 50
    assert window.end_ms == NOON_MS
    assert np.nansum(window.values) == 4


@pytest.mark.parametrize("wrong_ms", [ms(1970, 1, 2), ms(2099, 1, 1)])
def test_a_stamp_years_off_costs_neither_a_million_steps_nor_the_history(caplog, wrong_ms):
    rows = [("c", "prb", wrong_ms, 1.0), *(("c", "prb", NOON_MS + i * 60_000, 2.0) for i in (0, 1))]
    with caplog.at_level(logging.WARNING):
        (window,) = to_windows([batch(rows, period_ms=60_000)], catalogue=CATALOGUE)
    assert window.values.tolist() == [[2.0, 2.0]]
    assert "samples_left_out=1 reason=too_far_from_the_others" in caplog.text


def test_of_a_history_with_holes_everywhere_the_newest_steps_are_kept():
    rows = [("c", "prb", NOON_MS - i * 6_000_000, 1.0) for i in range(1000)]  # each 100 steps
    (window,) = to_windows([batch(rows, period_ms=60_000)], catalogue=CATALOGUE)
    assert window.end_ms == NOON_MS
    assert window.steps == 16_301


@pytest.mark.parametrize(("samples", "steps"), [(256, 255), (257, 16_385)])
def test_a_long_hole_is_kept_where_there_are_samples_enough(samples, steps):
    newest = NOON_MS // 60_000
    ends = [newest - 16_384, *range(newest - samples + 2, newest + 1)]
    rows = [("c", "prb", end * 60_000, 1.0) for end in ends]
    (window,) = to_windows([batch(rows, period_ms=60_000)], catalogue=CATALOGUE)
    assert window.steps == steps


def test_unusable_samples_are_left_out_and_counted(caplog):
    rows = [
        ("c", "prb", NOON_MS, 1.0),
        ("c", "prb", NOON_MS + QUARTER_MS, 1835.0),
        ("c", "prb", NOON_MS + 300_000, 3.0),
        ("d", "prb", -1, 3.0),
    ]
    with caplog.at_level(logging.WARNING):
        (window,) = to_windows([batch(rows)], catalogue=CATALOGUE, tolerance_ratio=0.1)
    assert window.values.tolist() == [[1.0]]
    assert "samples_left_out=3" in caplog.text


def test_kpis_are_named_as_in_the_catalogue():
    rows = [("c", "Load", NOON_MS, 1.0), ("c", "prb", NOON_MS + QUARTER_MS, 2.0)]
    (window,) = to_windows([batch(rows)], catalogue=CATALOGUE)
    assert window.kpis == ("prb",)
    assert window.values.tolist() == [[1.0, 2.0]]


def test_no_batches_give_no_windows():
    assert to_windows([], catalogue=CATALOGUE) == []
