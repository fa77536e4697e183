"""The verdict says what fits, what does not, and by how much."""

from __future__ import annotations

from tests.service.plan.makers import made_plan


def test_what_fits_says_what_is_to_spare():
    near, far = made_plan(slower=0.1).verdicts
    # 1.2 (0.6 + 0.3) ms; 32 cells: 1.2 (0.2 + 12.8 + 0.2 + 3.2) ms
    assert near == (
        "near-rt, 100 ms: fits. One cell by full in 1.08 ms, 98.9 ms to spare. "
        "32 cells by full in 19.7 ms, 80.3 ms to spare."
    )
    assert far.startswith("non-rt, 5 s: fits. One cell by full in 1.08 ms, 5 s to spare.")


def test_a_request_that_is_too_large_says_by_which_rung_and_context_it_fits():
    near, _ = made_plan().verdicts
    assert near == (
        "near-rt, 100 ms: fits. One cell by full in 7.56 ms, 92.4 ms to spare. "
        "32 cells by full in 160 ms, 60.1 ms too late; by short in 44.9 ms, 55.1 ms to spare. "
        "32 cells fit with 384 samples of context at most."
    )


def test_one_cell_that_fits_by_a_lesser_rung_alone_is_told_so():
    near, _ = made_plan(slower=100.0, cells=1).verdicts
    assert near == (
        "near-rt, 100 ms: fits without full. One cell by full in 720 ms, 620 ms too late; "
        "by baseline in 1.08 ms, 98.9 ms to spare. "
        "One cell fits with no context that was measured."
    )


def test_what_does_not_fit_says_by_how_much_the_best_and_the_quickest_are_late():
    near, far = made_plan(near_ms=1.0).verdicts
    assert near == (
        "near-rt, 1 ms: does not fit. One cell by full in 7.56 ms, 6.56 ms too late; "
        "by baseline in 1.08 ms, 0.08 ms too late."
    )
    assert "fits" in far


def test_no_rung_for_many_cells_names_the_quickest():
    near, _ = made_plan(slower=10.0, cells=1_000).verdicts
    assert "1,000 cells by full in 48.9 s, 48.8 s too late; by baseline in" in near
