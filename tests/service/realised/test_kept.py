import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.realised import kept as kept_module
from service.realised.kept import PATIENCE_STEPS, Fate, KeptForecasts, Samples
from tests.service.fakes import NOON_MS
from tests.service.realised.makers import STEP_MS, forecast

MEBIBYTE = 1 << 20


def samples(*rows: tuple[str, int, int, float], step_ms: int = STEP_MS) -> Samples:
    """Samples of (cell, number of the KPI, periods after noon, value)."""
    cells = sorted({row[0] for row in rows})
    return Samples(
        cells=cells,
        cell_index=np.array([cells.index(row[0]) for row in rows], dtype=np.int32),
        kpi=np.array([row[1] for row in rows], dtype=np.int32),
        kind=np.zeros(len(rows), dtype=np.int32),
        end_ms=np.array([NOON_MS + row[2] * step_ms for row in rows], dtype=np.int64),
        step_ms=np.full(len(rows), step_ms, dtype=np.int64),
        values=np.array([row[3] for row in rows]),
    )


def keep(kept: KeptForecasts, *args, model: int = 0, account: int = 0, **changes) -> bool:
    made = forecast(*args, **changes)
    return kept.keep(made, np.arange(len(made.kpis)), model=model, account=account)


def take(kept: KeptForecasts, batch: Samples) -> list[tuple[int, int, int, list[float]]]:
    """(account, sample, step ahead, quantiles) of everything that is found."""
    found, position = [], 0
    while position < len(batch):
        matches, after = kept.take(batch, position)
        assert after > position
        position = after
        for match in matches:
            found += [
                (match.account, *row)
                for row in zip(
                    match.sample.tolist(),
                    match.steps.tolist(),
                    match.quantiles.astype(np.float64).round(2).tolist(),
                    strict=True,
                )
            ]
    return found


def test_an_observation_finds_every_forecast_of_it_once():
    kept = KeptForecasts(MEBIBYTE, 2)
    for begin in (0, 1, 2):
        keep(kept, begin=begin, value=begin)
    assert take(kept, samples(("a", 0, 2, 5.0))) == [
        (0, 0, 2, [0.1, 0.5, 0.9]),
        (0, 0, 1, [1.1, 1.5, 1.9]),
    ]
    assert take(kept, samples(("a", 0, 2, 6.0))) == []
    assert kept.waiting_values == 12 - 2


def test_other_cells_kpis_and_steps_find_nothing():
    kept = KeptForecasts(MEBIBYTE, 2)
    keep(kept)
    assert take(kept, samples(("b", 0, 1, 5.0), ("a", 1, 1, 5.0), ("a", 0, 0, 5.0))) == []
    assert take(kept, samples(("a", 0, 5, 5.0))) == []
    assert take(kept, samples(("a", 0, 1, 5.0), step_ms=1000)) == []
    assert kept.waiting_values == 4


def test_each_kpi_finds_its_own_row():
    kept = KeptForecasts(MEBIBYTE, 3)
    values = np.arange(3 * 2 * 2).reshape(3, 2, 2)
    keep(kept, kpis=("x", "y", "z"), levels=(0.1, 0.9), values=values)
    found = take(kept, samples(("a", 2, 1, 0.0), ("a", 0, 2, 0.0)))
    assert found == [(0, 0, 1, [8.0, 9.0]), (0, 1, 2, [2.0, 3.0])]


def test_a_forecast_that_has_met_everything_leaves():
    kept = KeptForecasts(MEBIBYTE, 1)
    keep(kept, horizon=2)
    take(kept, samples(("a", 0, 1, 5.0), ("a", 0, 2, 5.0)))
    assert len(kept) == 0
    assert not kept.holds("a")
    assert set(kept.lost.values()) == {0}


def test_a_newer_forecast_of_the_same_model_and_begin_takes_the_place():
    kept = KeptForecasts(MEBIBYTE, 1)
    keep(kept, value=1)
    keep(kept, value=2)
    keep(kept, value=3, model=1, account=1)
    assert len(kept) == 2
    assert kept.lost[Fate.REPLACED] == 4
    assert take(kept, samples(("a", 0, 1, 5.0))) == [
        (0, 0, 1, [2.1, 2.5, 2.9]),
        (1, 0, 1, [3.1, 3.5, 3.9]),
    ]


def test_what_cannot_be_said_is_not_waited_for():
    kept = KeptForecasts(MEBIBYTE, 1)
    values = np.array([[[1.0, 2.0], [np.nan, np.nan]]])
    assert keep(kept, levels=(0.1, 0.9), values=values)
    assert kept.waiting_values == 1
    assert not keep(kept, "b", levels=(0.1, 0.9), values=values * np.nan)
    assert not kept.holds("b")


def test_a_forecast_expires_once_its_cell_has_gone_far_beyond_it():
    kept = KeptForecasts(MEBIBYTE, 1)
    keep(kept, horizon=2)
    take(kept, samples(("a", 0, 1, 5.0), ("a", 0, 2 + PATIENCE_STEPS, 5.0)))
    assert len(kept) == 1
    take(kept, samples(("b", 0, 999, 5.0)))
    take(kept, samples(("a", 0, 9999, 5.0), step_ms=1000))
    assert len(kept) == 1
    take(kept, samples(("a", 0, 3 + PATIENCE_STEPS, 5.0)))
    assert len(kept) == 0
    assert kept.lost[Fate.EXPIRED] == 1


def test_the_oldest_make_room_and_are_counted():
    kept = KeptForecasts(MEBIBYTE, 1)
    room = kept.most_records
    for number in range(room + 3):
        keep(kept, f"c{number}", horizon=1)
    assert len(kept) == room
    assert kept.lost[Fate.EVICTED] == 3
    assert not kept.holds("c2")
    assert kept.holds("c3")


def test_what_is_larger_than_the_memory_is_refused():
    kept = KeptForecasts(MEBIBYTE, 1)
    assert not keep(kept, horizon=kept.most_values)
    assert not keep(kept, kpis=("x", "y"))
    assert kept.lost[Fate.REFUSED] == kept.most_values + 8
    assert not keep(KeptForecasts(0, 1))


def test_the_forecasts_of_an_account_can_be_dropped():
    kept = KeptForecasts(MEBIBYTE, 1)
    keep(kept, account=3)
    keep(kept, "b", account=4)
    kept.drop_account(3)
    assert not kept.holds("a")
    assert kept.holds("b")


def test_many_pairs_are_looked_at_in_slices(monkeypatch):
    monkeypatch.setattr(kept_module, "_MOST_PAIRS", 8)
    kept = KeptForecasts(MEBIBYTE, 1)
    for begin in range(-6, 0):
        keep(kept, begin=begin, horizon=20)
    several = samples(*(("a", 0, period, 5.0) for period in range(1, 5)))
    _, after = kept.take(several, 0)
    assert after == 1
    assert len(take(kept, several)) == 4 * 6 - 6


steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("keep"),
            st.sampled_from("abc"),
            st.integers(-2, 2),  # begin
            st.integers(1, 6),  # horizon
            st.integers(1, 3),  # KPIs
            st.integers(1, 4),  # levels
            st.integers(0, 1),  # model
        ),
        st.tuples(st.just("take"), st.sampled_from("abc"), st.integers(-2, 8), st.integers(0, 2)),
    ),
    max_size=60,
)


@settings(deadline=None, max_examples=100)
@given(steps)
def test_any_sequence_keeps_its_bounds_and_loses_nothing_uncounted(sequence):
    kept = KeptForecasts(2 * 4 * KeptForecasts(0, 3).record_bytes, 3)
    kept.most_values = 90  # small, so that the ring of quantiles turns often
    kept._values = kept._values[:90]
    waiting: dict[tuple, dict[tuple[int, int], list[float]]] = {}
    total = scored = 0
    stamp = 0.0
    for what, cell, *rest in sequence:
        if what == "keep":
            begin, horizon, kpis, levels, model = rest
            stamp += 1
            size = (kpis, horizon, levels)
            values = stamp * 100 + np.arange(np.prod(size)).reshape(size)
            names = ("x", "y", "z")[:kpis]
            total += kpis * horizon
            keep(
                kept,
                cell,
                kpis=names,
                begin=begin,
                levels=tuple(np.linspace(0.1, 0.9, levels)),
                values=values,
                model=model,
                account=10 * model + levels,
            )
            waiting[cell, begin, model] = {
                (k, begin + h + 1): values[k, h].tolist()
                for k in range(kpis)
                for h in range(horizon)
            }
        else:
            period, kpi = rest
            found = take(kept, samples((cell, kpi, period, 1.0)))
            scored += len(found)
            expected = [
                quantiles.pop((kpi, period))
                for (name, _, _), quantiles in waiting.items()
                if name == cell and (kpi, period) in quantiles
            ]
            # Never something that was not forecast for it; less where forecasts had to go.
            for *_, quantiles in found:
                assert quantiles in expected
        assert len(kept) <= kept.most_records
        assert kept._used <= kept.most_records
        used = sorted(
            (int(kept._offset[r]), int(kept._offset[r] + size))
            for r in np.flatnonzero(kept._live)
            for size in [(kept._kpis[r] >= 0).sum() * kept._horizon[r] * kept._levels[r]]
        )
        assert all(a[1] <= b[0] for a, b in pairwise(used))
        assert total == scored + sum(kept.lost.values()) + kept.waiting_values


def test_memory_stays_within_what_is_stated_where_every_forecast_is_of_another_cell():
    limit = 4 * MEBIBYTE
    tracemalloc.start()
    try:
        kept = KeptForecasts(limit, 16)
        for number in range(3 * kept.most_records):
            keep(kept, f"{number:096d}", horizon=4)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(kept) == kept.most_records
    assert held <= limit


@pytest.mark.parametrize("most_bytes", [0, 100, MEBIBYTE])
def test_the_bound_is_at_most_what_was_asked_for(most_bytes):
    kept = KeptForecasts(most_bytes, 16)
    assert kept.most_records * kept.record_bytes + kept.most_values * 4 <= most_bytes
