"""Rings of samples against a dictionary that keeps everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpi import ring
from kpi.ring import NEVER, RingPool

HISTORY = 5
ROWS = 4
samples = st.tuples(
    st.integers(0, ROWS - 1),
    st.one_of(st.integers(100, 112), st.integers(0, 2000)),
    st.one_of(st.none(), st.integers(0, 50).map(float)),
)


def write(pool, batch):
    rows, index, values = zip(*batch, strict=True) if batch else ((), (), ())
    return pool.write(
        np.array(rows, np.int32), np.array(index, np.int64), np.array(values, np.float64)
    )


def unrolled(pool, row, end):
    out = np.empty(HISTORY, np.float32)
    pool.unroll(row, end, out)
    return out.tolist()


@settings(deadline=None)
@given(st.lists(st.lists(samples, max_size=12), max_size=8))
def test_rings_agree_with_a_dictionary(batches):
    pool = RingPool(HISTORY, np.float32)
    pool.reserve(ROWS)
    kept: dict[tuple[int, int], float] = {}
    newest = [NEVER] * ROWS
    for batch in batches:
        before = list(newest)
        for row, index, _ in batch:
            newest[row] = max(newest[row], index)
        live = [sample for sample in batch if sample[1] > newest[sample[0]] - HISTORY]
        merged = 0
        seen = set()
        for row, index, _ in live:
            old = kept.get((row, index), np.nan)
            merged += (row, index) in seen or not np.isnan(old)
            seen.add((row, index))
        counts = write(pool, batch)
        kept |= {(row, index): np.nan if v is None else v for row, index, v in live}
        assert counts.stored == len(live)
        assert counts.expired == len(batch) - len(live)
        assert counts.late == sum(index < before[row] for row, index, _ in batch)
        assert counts.merged == merged
        assert pool.newest.tolist() == newest
        for row in range(ROWS):
            for end in (newest[row], newest[row] + 2, newest[row] + HISTORY + 1):
                expected = [
                    kept.get((row, i), np.nan) if i <= newest[row] else np.nan
                    for i in range(end - HISTORY + 1, end + 1)
                ]
                np.testing.assert_array_equal(unrolled(pool, row, end), expected)
                with_value = np.flatnonzero(~np.isnan(expected)) + end - HISTORY + 1
                first = int(with_value[0]) if len(with_value) else None
                assert pool.first_known(row, end) == first


@settings(deadline=None)
@given(st.lists(samples, max_size=20))
def test_reading_single_samples_gives_what_was_written(batch):
    pool = RingPool(HISTORY, np.float64)
    pool.reserve(ROWS)
    write(pool, batch)
    kept = {(row, index): value for row, index, value in batch}
    rows = np.array([row for row, _, _ in batch], np.int32)
    index = np.array([i for _, i, _ in batch], np.int64)
    expected = [
        np.nan if kept[row, i] is None or i <= pool.newest[row] - HISTORY else kept[row, i]
        for row, i, _ in batch
    ]
    np.testing.assert_array_equal(pool.read(rows, index), np.array(expected, np.float64))
    assert np.isnan(pool.read(rows, index + 5000)).all()


def test_rows_of_several_slabs_keep_apart(monkeypatch):
    monkeypatch.setattr(ring, "SLAB_BYTES", 2 * HISTORY * 4)  # two rows a slab
    pool = RingPool(HISTORY, np.float32)
    pool.reserve(3)
    pool.reserve(4)
    write(pool, [(row, 10, float(row)) for row in (6, 0, 3, 1, 5, 2, 4)])
    write(pool, [(row, 13, float(10 + row)) for row in range(7)])
    for row in range(7):
        np.testing.assert_array_equal(
            unrolled(pool, row, 13), [np.nan, row, np.nan, np.nan, 10 + row]
        )


def test_clearing_of_many_skipped_slots_is_done_in_portions(monkeypatch):
    monkeypatch.setattr(ring, "CLEARED_AT_ONCE", 3)
    pool = RingPool(HISTORY, np.float32)
    pool.reserve(3)
    for row in range(3):
        write(pool, [(row, index, 1.0) for index in range(5)])
    write(pool, [(0, 6, 2.0), (1, 8, 2.0), (2, 40, 2.0)])
    nan = np.nan
    np.testing.assert_array_equal(unrolled(pool, 0, 6), [1, 1, 1, nan, 2])
    np.testing.assert_array_equal(unrolled(pool, 1, 8), [1, nan, nan, nan, 2])
    np.testing.assert_array_equal(unrolled(pool, 2, 40), [nan, nan, nan, nan, 2])


@pytest.mark.parametrize("end", [0, 100])
def test_a_row_without_samples_is_missing(end):
    pool = RingPool(HISTORY, np.float32)
    pool.reserve(1)
    assert np.isnan(unrolled(pool, 0, end)).all()
