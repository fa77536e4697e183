"""Recorded windows are split in time and known by their content."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from training.dataset import split_in_time, windows_digest


def test_the_later_part_starts_where_the_earlier_ends(make_window):
    window = make_window(steps=100)
    (earlier,), (later,) = split_in_time([window], 0.2)
    assert (earlier.steps, later.steps) == (80, 20)
    assert later.start_ms == earlier.end_ms
    np.testing.assert_array_equal(np.hstack([earlier.values, later.values]), window.values)


def test_the_digest_knows_content_and_not_order(make_window):
    one, two = make_window(0), make_window(1)
    assert windows_digest([one, two]) == windows_digest([two, one])
    changed = one.values.copy()
    changed[0, 5] += 1
    assert windows_digest([replace(one, values=changed), two]) != windows_digest([one, two])
