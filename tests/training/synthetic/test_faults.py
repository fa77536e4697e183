"""Gaps: where they lie, how many there are, and what they never take away."""

from __future__ import annotations

import numpy as np
import pytest

from training.synthetic.faults import OUTAGE_SHARE, TRAILING_SHARE, add_faults

CELLS, KPIS, HISTORY, HORIZON, CONTEXT = 3_000, 2, 320, 48, 192


@pytest.fixture(scope="module")
def clean() -> np.ndarray:
    return np.ones((CELLS, KPIS, HISTORY + HORIZON), dtype=np.float32)


@pytest.fixture(scope="module")
def faulty(clean) -> np.ndarray:
    lower = np.zeros((CELLS, KPIS), dtype=np.float32)
    lower[:, 1] = -np.inf
    return add_faults(
        np.random.default_rng(0), clean, lower, context_steps=CONTEXT, horizon=HORIZON
    )


def test_clean_values_are_left_alone(clean, faulty):
    assert (clean == 1.0).all()
    assert set(np.unique(faulty[np.isfinite(faulty)])) == {0.0, 1.0}


def test_most_cells_report_everything_or_nearly(faulty):
    missing = np.isnan(faulty[:, 0]).mean(axis=1)
    assert 0.35 < (missing == 0.0).mean() < 0.7


def test_a_lost_file_takes_all_kpis_with_it(faulty):
    gaps = np.isnan(faulty)
    agree = (gaps[:, 0] == gaps[:, 1]).all(axis=1)
    assert agree.mean() > 0.85
    assert agree.mean() < 1.0


def test_outages_are_zeros_only_where_zero_is_the_limit(faulty):
    down = (faulty == 0.0).any(axis=2)
    assert down[:, 0].mean() == pytest.approx(OUTAGE_SHARE, abs=0.05)
    assert not down[:, 1].any()


def test_outages_are_denser_near_the_origin(faulty):
    down = (faulty[:, 0] == 0.0).mean(axis=0)
    early, late = down[: HISTORY // 2].mean(), down[HISTORY - 40 : HISTORY].mean()
    assert late > 1.5 * early > 0
    # Not so dense that the model learns to expect zeros.
    assert down[HISTORY:].mean() < 0.05


def test_late_files_end_at_the_origin(faulty):
    gaps = np.isnan(faulty).all(axis=1)
    late = gaps[:, HISTORY - 1] & ~gaps[:, HISTORY]
    assert late.mean() == pytest.approx(TRAILING_SHARE, abs=0.04)
    longest = gaps[:, HISTORY - 40 : HISTORY].all(axis=1)
    assert longest.mean() < 0.01


def test_new_cells_have_no_early_samples(faulty):
    gaps = np.isnan(faulty).all(axis=1)
    new = gaps[:, :40].all(axis=1)
    assert 0.08 < new.mean() < 0.2
    assert gaps[new, HISTORY:].mean() < 0.1


def test_the_future_has_gaps_too(faulty):
    assert 0.01 < np.isnan(faulty[:, :, HISTORY:]).mean() < 0.08


def test_every_kpi_keeps_samples_in_its_context(faulty):
    seen = np.isfinite(faulty[:, :, HISTORY - CONTEXT : HISTORY]).sum(axis=2)
    assert seen.min() >= 8
