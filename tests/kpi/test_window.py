"""The window of samples that a forecast starts from."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from kpi.window import KpiWindow, PlannedEvent, checked_window

START_MS = 1_793_491_200_000  # 2026-11-01T00:00Z


def window(values, kpis=("a", "b"), step_ms=900_000):
    return KpiWindow("cell", kpis, START_MS, step_ms, np.array(values, np.float32))


def test_end_is_where_the_last_sample_ends():
    found = window([[1, 2, 3], [4, 5, 6]])
    assert found.steps == 3
    assert found.end_ms == START_MS + 3 * 900_000
    assert found.step_seconds == 900.0
    assert found.start == datetime(2026, 11, 1, tzinfo=UTC)


def test_missing_ratio_counts_nan():
    assert window([[1, np.nan], [np.nan, np.nan]]).missing_ratio == 0.75


def test_an_empty_window_is_all_missing():
    assert window(np.empty((2, 0))).missing_ratio == 1.0


@pytest.mark.parametrize("values", [[[1, 2]], [1, 2], [[1], [2], [3]]])
def test_values_must_have_a_row_for_each_kpi(values):
    with pytest.raises(ValueError, match=r"expected values of shape \(K, T\) with K = 2"):
        window(values)


@pytest.mark.parametrize("step_ms", [0, -900_000])
def test_a_step_must_be_positive(step_ms):
    with pytest.raises(ValueError, match="expected a positive step"):
        window([[1], [2]], step_ms=step_ms)


def test_events_are_planned_unless_said_otherwise():
    assert PlannedEvent(START_MS, START_MS + 1).kind == "planned"


def test_a_checked_window_is_what_the_constructor_makes():
    event = PlannedEvent(START_MS, START_MS + 1, "match")
    values = np.ones((1, 2), np.float32)
    parts = ("cell", ("a",), START_MS, 900_000, values, "Europe/Madrid", (event,), "ES-CT")
    found, made = checked_window(*parts), KpiWindow(*parts)
    assert type(found) is KpiWindow
    assert all(getattr(found, name) is getattr(made, name) for name in KpiWindow.__slots__)
    assert repr(found) == repr(made)
