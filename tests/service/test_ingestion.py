import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from kpi.errors import JournalError
from kpi.observation import ObservationBatch
from kpi.store import KpiStore, StoreLimits
from service import ingestion
from service.ingestion import Ingestion
from service.metrics import Metrics
from tests.service.fakes import NOON_MS, FakeClock, small_catalogue

STEP_MS = 900_000


def make() -> tuple[Ingestion, KpiStore, CollectorRegistry]:
    catalogue, clock, registry = small_catalogue(), FakeClock(), CollectorRegistry()
    store = KpiStore(
        StoreLimits(max_cells=4, history_steps=4), catalogue, wall_clock=lambda: NOON_MS / 1000
    )
    metrics = Metrics(registry, clock, "near-rt")
    return Ingestion(store, catalogue, metrics, queue_limit=8), store, registry


def batch(samples) -> ObservationBatch:
    cell, end, value = zip(*samples, strict=True)
    n = len(samples)
    return ObservationBatch(
        cells=("a", "b", "c", "d"),
        kpis=("RRU.PrbTotDl",),
        cell_index=np.array(cell, dtype=np.int32),
        kpi_index=np.zeros(n, dtype=np.int32),
        period_end_ms=NOON_MS + np.array(end, dtype=np.int64) * STEP_MS,
        period_ms=np.full(n, STEP_MS, dtype=np.int64),
        values=np.array(value, dtype=np.float64),
        suspect=np.zeros(n, dtype=np.bool_),
        arrival_ms=NOON_MS,
    )


def stored(store: KpiStore):
    return {
        summary.cell: (summary.last_ms, store.window(summary.cell).values.tolist())
        for summary in store.cells()
    }


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(-3, 0), st.sampled_from([1.0, 50.0, 500.0])),
        min_size=1,
        max_size=12,
    )
)
def test_a_batch_that_goes_in_by_pieces_ends_as_one_that_goes_in_whole(samples):
    whole, in_pieces = make(), make()
    expected = whole[0].merge(batch(samples))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingestion, "_PIECE_SAMPLES", 3)
        result = in_pieces[0].merge(batch(samples))
    assert result.accepted == expected.accepted
    assert result.expired == expected.expired
    assert sum(r.count for r in result.rejected) == sum(r.count for r in expected.rejected)
    reasons = [rejection.reason for rejection in result.rejected]
    assert len(reasons) == len(set(reasons))
    assert {k: np.nan_to_num(v[1]).tolist() for k, v in stored(in_pieces[1]).items()} == {
        k: np.nan_to_num(v[1]).tolist() for k, v in stored(whole[1]).items()
    }


def test_a_large_batch_reaches_the_store_in_pieces_and_is_counted_once(monkeypatch):
    taker, store, registry = make()
    sizes = []
    merge = store.merge

    def noted(piece):
        sizes.append(len(piece))
        return merge(piece)

    monkeypatch.setattr(store, "merge", noted)
    monkeypatch.setattr(ingestion, "_PIECE_SAMPLES", 3)
    taker.merge(batch([(i % 2, -(i // 2), 5.0) for i in range(7)]))
    assert sizes == [3, 3, 1]
    counted = registry.get_sample_value("rancast_observations_total", {"outcome": "accepted"})
    assert counted == 7


def test_pieces_before_a_full_disk_are_counted(monkeypatch):
    taker, store, registry = make()
    merge, calls = store.merge, iter([True, False])

    def second_fails(piece):
        if next(calls):
            return merge(piece)
        raise JournalError("disk full")

    monkeypatch.setattr(store, "merge", second_fails)
    monkeypatch.setattr(ingestion, "_PIECE_SAMPLES", 2)
    with pytest.raises(JournalError):
        taker.merge(batch([(0, -i, 5.0) for i in range(4)]))
    counted = registry.get_sample_value("rancast_observations_total", {"outcome": "accepted"})
    assert counted == 2


def test_only_so_many_unknown_names_are_remembered(monkeypatch):
    taker, _, _ = make()
    monkeypatch.setattr(ingestion, "_MOST_REMEMBERED", 2)
    odd = batch([(0, 0, 1.0)])
    object.__setattr__(odd, "kpis", ("x", "y", "z"))
    taker.merge(odd)
    assert len(taker._named) == 2


def test_who_asks_is_told_of_what_the_store_took_and_of_nothing_else(monkeypatch):
    _, store, _ = make()
    told: list[int] = []
    catalogue = small_catalogue()
    metrics = Metrics(CollectorRegistry(), FakeClock(), "near-rt")
    taker = Ingestion(
        store, catalogue, metrics, queue_limit=8, on_stored=lambda piece: told.append(len(piece))
    )
    merge, outcomes = store.merge, iter([True, True, False])

    def third_fails(piece):
        if next(outcomes):
            return merge(piece)
        raise JournalError("disk full")

    monkeypatch.setattr(store, "merge", third_fails)
    monkeypatch.setattr(ingestion, "_PIECE_SAMPLES", 2)
    with pytest.raises(JournalError):
        taker.merge(batch([(0, -i, 5.0) for i in range(5)]))
    assert told == [2, 2]
