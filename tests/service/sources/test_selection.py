import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpi.observation import ObservationBatch
from service.sources.selection import KpiSelection
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


@given(st.lists(st.sampled_from([*KNOWN, "x", "y"])), st.booleans())
def test_the_samples_of_the_taken_kpis_stay_as_they_are(kpis, unknown):
    one = batch(*kpis)
    chosen = KpiSelection(small_catalogue(), unknown=unknown).of(one)
    assert samples(chosen) == [s for s in samples(one) if unknown or s[0] in KNOWN]
    assert set(chosen.kpis) == {name for name, _ in samples(chosen)}


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
    assert KpiSelection(small_catalogue()).of(one) is one
