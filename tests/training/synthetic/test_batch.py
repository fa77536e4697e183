"""A batch keeps its contract: pure in the seed, whole patches, limits, plausible gaps."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpi.catalogue import KpiKind
from training.synthetic import BatchSpec, SyntheticBatch, sample_batch
from training.synthetic.timing import DAY_MS, HOUR_MS, MINUTE_MS

BATCHES = 120


@pytest.fixture(scope="module")
def batches() -> list[SyntheticBatch]:
    rng = np.random.default_rng(12)
    return [sample_batch(rng, BatchSpec()) for _ in range(BATCHES)]


def _history(batch: SyntheticBatch) -> int:
    return int(batch.values.shape[2]) - batch.horizon


def _context(batch: SyntheticBatch) -> np.ndarray:
    origin = _history(batch)
    return batch.values[:, :, origin - batch.context_steps : origin]


def test_same_seed_gives_the_same_bits():
    for seed in range(6):
        first = sample_batch(np.random.default_rng(seed), BatchSpec())
        second = sample_batch(np.random.default_rng(seed), BatchSpec())
        for name in ("values", "target", "start_ms", "kinds", "lower", "upper"):
            assert getattr(first, name).tobytes() == getattr(second, name).tobytes()
        assert (first.step_ms, first.horizon) == (second.step_ms, second.horizon)


def test_other_seeds_give_other_cells():
    first, second = (sample_batch(np.random.default_rng(seed), BatchSpec()) for seed in (1, 2))
    assert first.values.tobytes() != second.values.tobytes()


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    series=st.integers(1, 12),
    max_kpis=st.integers(1, 8),
    patch=st.sampled_from([1, 8, 16, 20]),
    context=st.integers(32, 256),
    more_history=st.integers(0, 200),
    held_out=st.booleans(),
)
def test_shapes_follow_the_spec(seed, series, max_kpis, patch, context, more_history, held_out):
    spec = BatchSpec(
        series=series,
        max_kpis=max_kpis,
        max_context_steps=context,
        max_history_steps=context + more_history,
        max_horizon=4 * patch,
        patch=patch,
        held_out=held_out,
    )
    batch = sample_batch(np.random.default_rng(seed), spec)
    cells, kpis, length = batch.values.shape
    history = length - batch.horizon
    assert batch.values.dtype == batch.target.dtype == np.float32
    assert kpis <= max_kpis
    assert cells == max(1, series // kpis)
    assert batch.target.shape == (cells, kpis, batch.horizon)
    assert batch.start_ms.shape == (cells,)
    assert batch.kinds.shape == batch.lower.shape == batch.upper.shape == (cells, kpis)
    assert patch <= batch.context_steps <= context
    assert batch.context_steps <= history <= context + more_history
    assert 1 <= batch.horizon // patch <= 4
    assert all(steps % patch == 0 for steps in (batch.horizon, history, batch.context_steps))


def test_target_is_the_end_of_the_values(batches):
    for batch in batches:
        np.testing.assert_array_equal(batch.target, batch.values[:, :, -batch.horizon :])


def test_values_are_finite_or_missing(batches):
    for batch in batches:
        assert not np.isinf(batch.values).any()


def test_values_keep_their_natural_limits(batches):
    for batch in batches:
        lower, upper = batch.lower[:, :, None], batch.upper[:, :, None]
        seen = ~np.isnan(batch.values)
        assert (~seen | ((batch.values >= lower) & (batch.values <= upper))).all()


def test_every_kind_occurs_with_its_limits(batches):
    limits = {
        (KpiKind(list(KpiKind)[kind]), float(low), float(high))
        for batch in batches
        for kind, low, high in zip(
            batch.kinds.ravel(), batch.lower.ravel(), batch.upper.ravel(), strict=True
        )
    }
    inf = float("inf")
    assert limits == {
        (KpiKind.COUNT, 0.0, inf),
        (KpiKind.GAUGE, -inf, inf),
        (KpiKind.RATE, 0.0, inf),
        (KpiKind.VOLUME, 0.0, inf),
        (KpiKind.PERCENT, 0.0, 100.0),
        (KpiKind.RATIO, 0.0, 1.0),
        (KpiKind.DELAY, 0.0, inf),
    }


def test_counts_are_whole_numbers(batches):
    count = list(KpiKind).index(KpiKind.COUNT)
    for batch in batches:
        counts = batch.values[batch.kinds == count]
        seen = counts[np.isfinite(counts)]
        assert (seen == np.rint(seen)).all()


def test_every_series_has_something_to_go_on(batches):
    for batch in batches:
        assert (np.isfinite(_context(batch)).sum(axis=2) >= 8).all()


def test_share_of_missing_samples_is_plausible(batches):
    history = np.mean([np.isnan(batch.values[:, :, : _history(batch)]).mean() for batch in batches])
    future = np.mean([np.isnan(batch.target).mean() for batch in batches])
    assert 0.06 < history < 0.25
    assert 0.01 < future < 0.08


def test_late_files_leave_trailing_gaps(batches):
    late = cells = 0
    for batch in batches:
        last = np.isnan(_context(batch)[:, :, -2:]).all(axis=(1, 2))
        late += int(last.sum())
        cells += len(last)
    assert 0.01 < late / cells < 0.12


def test_half_of_the_batches_have_one_kpi(batches):
    kpis = Counter(batch.values.shape[1] for batch in batches)
    assert set(kpis) == {1, 2, 3, 4}
    assert 0.35 < kpis[1] / len(batches) < 0.65


def test_series_count_stays_near_the_asked_for(batches):
    for batch in batches:
        assert 30 <= batch.values.shape[0] * batch.values.shape[1] <= 32


def test_hourly_history_is_often_longer_than_the_context(batches):
    hourly = [b for b in batches if 15 * MINUTE_MS <= b.step_ms <= HOUR_MS]
    longer = [b for b in hourly if _history(b) > b.context_steps]
    assert 0.25 < len(longer) / len(hourly) < 0.75
    assert max(_history(b) for b in hourly) > 1_200


def test_starts_lie_on_the_grid_of_the_step(batches):
    for batch in batches:
        assert batch.start_ms.dtype == np.int64
        assert (batch.start_ms % min(batch.step_ms, DAY_MS) == 0).all()


def test_kpis_of_a_cell_move_together(batches):
    together: list[float] = []
    apart: list[float] = []
    for batch in batches:
        if batch.values.shape[1] == 1 or len(batch.values) < 2:
            continue
        first = np.nan_to_num(batch.values[:, 0].astype(np.float64))
        second = np.nan_to_num(batch.values[:, 1].astype(np.float64))
        for other, into in ((second, together), (np.roll(second, 1, axis=0), apart)):
            for a, b in zip(first, other, strict=True):
                if a.std() > 0 and b.std() > 0:
                    into.append(abs(np.corrcoef(a, b)[0, 1]))
    assert np.median(together) > 0.4
    assert np.median(together) > 2.0 * np.median(apart)


@pytest.mark.parametrize(
    "wrong",
    [
        {"series": 0},
        {"max_kpis": 0},
        {"patch": 0},
        {"max_context_steps": 16},
        {"max_horizon": 8},
        {"max_history_steps": 512},
    ],
)
def test_impossible_specs_are_refused_by_name(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        BatchSpec(**wrong)
