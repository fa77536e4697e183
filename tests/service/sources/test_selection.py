import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpi.observation import ObservationBatch
from kpi.store import KpiStore, StoreLimits
from service.sources.selection import KpiSelection, known_first, with_kpis
from tests.service.fakes import small_catalogue

KNOWN = ["RRU.PrbTotDl", "DRB.MeanActiveUeDl"]


def batch(*kpis: str) -> ObservationBatch:
    n = len(kpis)
    ends_ms = [900_000] * n
    return ObservationBatch.from_lists(
        ["c"] * n, kpis, ends_ms, 900_000, [float(i) for i in range(n)], arrival_ms=900_000
    )


def samples(one: ObservationBatch):
    return [(one.kpis[k], v) for k, v in zip(one.kpi_index, one.values.tolist(), strict=True)]


@given(st.lists(st.sampled_from([*KNOWN, "x", "y"])))
def test_known_first_reorders_names_and_changes_no_sample(kpis):
    one = batch(*kpis)
    ordered = known_first(one, small_catalogue())
    assert samples(ordered) == samples(one)
    are_unknown = [name not in small_catalogue() for name in ordered.kpis]
    assert are_unknown == sorted(are_unknown)


def test_a_known_kpi_keeps_its_place_in_a_cell_full_of_counters():
    catalogue = small_catalogue()
    store = KpiStore(StoreLimits(max_kpis_per_cell=2), catalogue)
    result = store.merge(known_first(batch("a", "b", "c", *KNOWN), catalogue))
    assert result.accepted == 2
    assert store.cells()[0].kpis == tuple(sorted(KNOWN))


@pytest.mark.parametrize(
    ("names", "unknown", "taken"),
    [
        ((), True, ["RRU.PrbTotDl", "x"]),
        ((), False, ["RRU.PrbTotDl"]),
        (("pmPrbUsedDl",), True, ["RRU.PrbTotDl"]),
        (("x",), False, ["x"]),
        (("nothing",), True, []),
    ],
)
def test_only_the_selected_kpis_are_taken(names, unknown, taken):
    selection = KpiSelection(small_catalogue(), names, unknown)
    chosen = selection.of(batch("RRU.PrbTotDl", "x"))
    assert list(chosen.kpis) == taken
    assert [name for name, _ in samples(chosen)] == taken


def test_a_batch_of_which_all_is_taken_is_not_copied():
    one = batch("RRU.PrbTotDl", "x")
    assert with_kpis(one, [0, 1]) is one
