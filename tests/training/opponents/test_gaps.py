"""Gaps are filled from inside the row, never from before its first value."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from training.opponents.gaps import filled

ROWS = arrays(
    np.float64,
    array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=12),
    elements=st.one_of(st.just(np.nan), st.floats(-1e6, 1e6)),
)


@given(ROWS)
def test_rows_are_filled_as_the_library_interpolates(rows):
    for row, found in zip(rows, filled(rows), strict=True):
        seen = np.flatnonzero(~np.isnan(row))
        if not len(seen):
            assert np.isnan(found).all()
            continue
        first = seen[0]
        assert np.isnan(found[:first]).all()
        expected = np.interp(np.arange(first, len(row)), seen, row[seen])
        np.testing.assert_allclose(found[first:], expected, rtol=1e-9, atol=1e-6)


@given(ROWS)
def test_what_was_seen_stays(rows):
    seen = ~np.isnan(rows)
    np.testing.assert_array_equal(filled(rows)[seen], rows[seen])
