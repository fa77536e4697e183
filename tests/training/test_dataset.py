"""Recorded windows are split in time and known by their content."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kpi.window import PlannedEvent
from training.dataset import cut_in_time, earlier_parts, known_at, windows_digest


def test_the_earlier_part_ends_at_the_cut(make_window):
    window = make_window(steps=100)
    (earlier,) = earlier_parts([window], 0.2)
    assert earlier.steps == cut_in_time(window, 0.2) == 80
    assert earlier.start_ms == window.start_ms
    np.testing.assert_array_equal(earlier.values, window.values[:, :80])


def test_what_is_known_ends_at_the_origin_and_goes_back_as_far_as_asked(make_window):
    window = make_window(steps=100)
    np.testing.assert_array_equal(known_at(window, 40).values, window.values[:, :40])
    late = known_at(window, 40, 15)
    np.testing.assert_array_equal(late.values, window.values[:, 25:40])
    assert (late.start_ms, late.end_ms) == (
        window.start_ms + 25 * window.step_ms,
        window.start_ms + 40 * window.step_ms,
    )
    assert known_at(window, 10, 15).steps == 10


def test_the_digest_knows_content_and_not_order(make_window):
    one, two = make_window(0), make_window(1)
    assert windows_digest([one, two]) == windows_digest([two, one])
    changed = one.values.copy()
    changed[0, 5] += 1
    assert windows_digest([replace(one, values=changed), two]) != windows_digest([one, two])


def test_the_digest_knows_the_clock(make_window):
    window = make_window()
    assert windows_digest([window]) != windows_digest([replace(window, time_zone="Asia/Tokyo")])


def test_the_digest_knows_what_is_planned(make_window):
    window = make_window()
    event = PlannedEvent(window.start_ms, window.end_ms)
    changes: list[dict[str, Any]] = [
        {},
        {"country": "ES"},
        {"country": "ES-CT"},
        {"events": (event,)},
    ]
    assert len({windows_digest([replace(window, **change)]) for change in changes}) == 4
