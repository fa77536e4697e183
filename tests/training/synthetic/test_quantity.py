"""KPI values: magnitudes, limits and what congestion does to each kind."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from kpi.catalogue import KpiKind
from training.synthetic.quantity import KIND_SHARES, KINDS, draw_kinds, to_quantities

ROWS, LENGTH = 300, 200


def _values(kind: KpiKind, activity: np.ndarray | None = None, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if activity is None:
        activity = rng.gamma(2.0, 0.5, (ROWS, LENGTH)).astype(np.float32)
    full = np.minimum(activity / 3.0, 1.5).astype(np.float32)
    kinds = np.full(len(activity), KINDS.index(kind), dtype=np.int64)
    return to_quantities(rng, kinds, activity.astype(np.float32), full).values


def _correlation_with_load(kind: KpiKind) -> np.ndarray:
    activity = np.tile(np.linspace(0.1, 3.0, LENGTH, dtype=np.float32), (ROWS, 1))
    values = _values(kind, activity).astype(np.float64)
    moving = values.std(axis=1) > 0
    return np.array([np.corrcoef(activity[0], row)[0, 1] for row in values[moving]])


def test_kinds_are_those_of_the_catalogue_in_its_order():
    assert list(KINDS) == list(KpiKind)
    assert set(KIND_SHARES) == set(KpiKind)
    assert sum(KIND_SHARES.values()) == pytest.approx(1.0)


def test_kinds_come_in_the_stated_shares():
    drawn = Counter(draw_kinds(np.random.default_rng(0), (5_000, 2)).ravel().tolist())
    for index, kind in enumerate(KINDS):
        assert drawn[index] / 10_000 == pytest.approx(KIND_SHARES[kind], abs=0.015)


@pytest.mark.parametrize("kind", list(KpiKind))
def test_extreme_activity_stays_finite_and_within_limits(kind):
    extreme = np.random.default_rng(0).pareto(0.3, (ROWS, LENGTH)).astype(np.float32)
    kinds = np.full(ROWS, KINDS.index(kind), dtype=np.int64)
    drawn = to_quantities(
        np.random.default_rng(1), kinds, extreme, np.minimum(extreme, np.float32(1.5))
    )
    assert np.isfinite(drawn.values).all()
    assert (drawn.values >= drawn.lower[:, None]).all()
    assert (drawn.values <= drawn.upper[:, None]).all()


def test_magnitudes_span_the_stated_decades():
    level = _values(KpiKind.VOLUME).mean(axis=1)
    assert level.min() < 1e-2
    assert level.max() > 1e4


def test_only_gauges_go_below_zero():
    negative = {kind: bool((_values(kind) < 0.0).any()) for kind in KpiKind}
    assert negative == {kind: kind is KpiKind.GAUGE for kind in KpiKind}


def test_counts_are_whole_and_half_of_them_noisy():
    steady = np.ones((ROWS, LENGTH), dtype=np.float32)
    counts = _values(KpiKind.COUNT, steady)
    assert (counts == np.rint(counts)).all()
    assert 0.3 < (counts.std(axis=1) > 0).mean() < 0.65


def test_volume_grows_with_load():
    assert _correlation_with_load(KpiKind.VOLUME).min() > 0.99


def test_throughput_of_a_user_falls_with_load_in_some_cells():
    correlation = _correlation_with_load(KpiKind.RATE)
    assert 0.1 < (correlation < -0.2).mean() < 0.4
    assert (correlation > 0.9).mean() > 0.5


def test_delay_grows_with_load_in_most_cells():
    assert np.median(_correlation_with_load(KpiKind.DELAY)) > 0.4


def test_a_ratio_is_load_or_failures_or_success():
    correlation = _correlation_with_load(KpiKind.RATIO)
    assert (correlation > 0.5).mean() > 0.5
    assert (correlation < -0.3).mean() > 0.05


def test_some_percentages_are_whole_and_some_reach_full():
    percent = _values(KpiKind.PERCENT)
    moving = percent[percent.std(axis=1) > 0]
    assert 0.08 < (moving == np.rint(moving)).all(axis=1).mean() < 0.35
    assert (percent.max(axis=1) == 100.0).mean() > 0.05
