"""Segments: exact areas on the grid, and no end that runs out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.synthetic.segments import Segments, draw_segments, rasterise


def test_edges_inside_a_sample_count_by_their_share():
    segments = Segments(np.array([0, 1]), np.array([0.25, -3.0]), np.array([2.5, 1.0]))
    grid = rasterise(segments, np.array([4.0, 1.0]), rows=2, length=4)
    np.testing.assert_allclose(grid, [[3.0, 4.0, 2.0, 0.0], [1.0, 0.0, 0.0, 0.0]], atol=1e-6)


@settings(max_examples=50, deadline=None)
@given(
    edges=st.lists(
        st.tuples(st.floats(0.0, 20.0), st.floats(0.0, 20.0), st.floats(0.0, 5.0)),
        min_size=1,
        max_size=8,
    )
)
def test_the_area_is_kept(edges):
    start = np.array([min(a, b) for a, b, _ in edges])
    end = np.array([max(a, b) for a, b, _ in edges])
    level = np.array([height for _, _, height in edges])
    grid = rasterise(Segments(np.zeros(len(edges), np.intp), start, end), level, 1, 20)
    assert grid.sum() == pytest.approx(((end - start) * level).sum(), abs=1e-3)


@pytest.mark.parametrize("cycle", [1.0, 7.0, 60.0, 900.0])
def test_the_end_is_as_busy_as_the_start(cycle):
    rows, length = 600, 400
    segments = draw_segments(
        np.random.default_rng(0),
        np.full(rows, 0.4 * cycle, dtype=np.float32),
        np.full(rows, 0.6 * cycle, dtype=np.float32),
        np.full(rows, 1.2, dtype=np.float32),
        length,
    )
    busy = rasterise(segments, np.ones(len(segments.row)), rows, length)
    assert busy.max() <= 1.0 + 1e-6
    late = busy[:, -100:].mean()
    assert late == pytest.approx(busy[:, 100:200].mean(), abs=0.07)
    assert 0.2 < late < 0.6


def test_segments_of_a_series_follow_each_other():
    segments = draw_segments(
        np.random.default_rng(0),
        np.array([1.0, 30.0], dtype=np.float32),
        np.array([0.0, 5.0], dtype=np.float32),
        np.array([0.5, 0.5], dtype=np.float32),
        100,
    )
    for row in (0, 1):
        start, end = segments.start[segments.row == row], segments.end[segments.row == row]
        assert (start[1:] >= end[:-1] - 1e-9).all()
        assert start[0] <= 35.0
        assert end[-1] > 100.0
