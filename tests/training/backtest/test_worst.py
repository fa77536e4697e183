"""The worst cells are those with most of the error, and few are kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.accuracy import Accuracy
from training.backtest.worst import WorstCells


def scored(error: float, targets: int = 10) -> Accuracy:
    return Accuracy(targets, 100.0, np.array([error]), error, 0.0, 0, targets, 1.0)


def test_shares_are_of_the_error_of_all_cells_and_the_best_is_named():
    worst = WorstCells("own", most=2)
    for cell, error in (("a", 1.0), ("b", 6.0), ("c", 3.0)):
        worst.add(cell, "load", {"own": scored(error), "other": scored(2.0)})
    found = worst.found()
    assert [entry.cell for entry in found] == ["b", "c"]
    assert [entry.error_ratio for entry in found] == pytest.approx([0.6, 0.3])
    assert {(entry.best_model, entry.best_wql) for entry in found} == {("other", 0.02)}


def test_kpis_do_not_compete():
    worst = WorstCells("own", most=1)
    worst.add("a", "load", {"own": scored(100.0)})
    worst.add("a", "users", {"own": scored(1.0)})
    assert [(entry.kpi, entry.error_ratio) for entry in worst.found()] == [
        ("load", 1.0),
        ("users", 1.0),
    ]


def test_a_cell_without_targets_is_no_candidate():
    worst = WorstCells("own")
    worst.add("a", "load", {"own": scored(0.0, targets=0)})
    assert worst.found() == []


def test_no_error_at_all_has_no_shares():
    worst = WorstCells("own")
    worst.add("a", "load", {"own": scored(0.0)})
    assert worst.found()[0].error_ratio == 0


@settings(max_examples=50)
@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 5))
def test_what_is_kept_is_what_sorting_all_would_give(errors, most):
    worst = WorstCells("own", most=most)
    for number, error in enumerate(errors):
        worst.add(str(number), "load", {"own": scored(float(error))})
    order = sorted(range(len(errors)), key=lambda number: (-errors[number], number))
    assert [int(entry.cell) for entry in worst.found()] == order[:most]
