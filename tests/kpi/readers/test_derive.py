"""KPIs from pairs of counters."""

from __future__ import annotations

import numpy as np

from kpi.catalogue import Catalogue, Derivation
from kpi.observation import ObservationBatch
from kpi.readers.derive import derive
from tests.kpi.readers.pm_files import rows


def catalogue(*rules: Derivation) -> Catalogue:
    return Catalogue("test", {}, rules)


MEAN = Derivation("mean", "sum", "n", scale=10.0)


def batch(*samples: tuple[str, str, int, float, bool]) -> ObservationBatch:
    cells, kpis, end, values, suspect = zip(*samples, strict=True)
    return ObservationBatch.from_lists(cells, kpis, end, 1000, values, suspect, arrival_ms=0)


def test_sample_stands_where_both_parts_have_one_at_the_same_object_and_period() -> None:
    given = batch(
        ("a", "sum", 1000, 6.0, False),
        ("a", "n", 1000, 3.0, True),
        ("b", "sum", 1000, 6.0, False),
        ("b", "n", 2000, 3.0, False),
    )
    assert rows([derive(given, catalogue(MEAN))])[4:] == [("a", "mean", 1000, 1000, 20.0, True)]


def test_zero_and_missing_parts_give_no_value() -> None:
    given = batch(
        ("a", "sum", 1000, 6.0, False),
        ("a", "n", 1000, 0.0, False),
        ("b", "sum", 1000, np.nan, False),
        ("b", "n", 1000, 1.0, False),
    )
    assert [row[4] for row in rows([derive(given, catalogue(MEAN))])[4:]] == [None, None]


def test_last_of_repeated_parts_counts() -> None:
    given = batch(
        ("a", "n", 1000, 1.0, False),
        ("a", "sum", 1000, 1.0, False),
        ("a", "sum", 1000, 4.0, False),
        ("a", "n", 1000, 2.0, False),
    )
    assert [row[4] for row in rows([derive(given, catalogue(MEAN))])[4:]] == [20.0]


def test_reported_kpi_is_not_derived_and_lacking_parts_change_nothing() -> None:
    given = batch(
        ("a", "sum", 1000, 6.0, False),
        ("a", "n", 1000, 3.0, False),
        ("a", "mean", 1000, 7.0, False),
    )
    assert derive(given, catalogue(MEAN)) is given
    assert derive(given, catalogue(Derivation("x", "sum", "other"))) is given
    assert derive(given, catalogue()) is given


def test_several_rules_may_share_a_part() -> None:
    given = batch(("a", "sum", 1000, 6.0, False), ("a", "n", 1000, 3.0, False))
    inverse = Derivation("inverse", "n", "sum")
    found = rows([derive(given, catalogue(MEAN, inverse))])
    assert [(row[1], row[4]) for row in found[2:]] == [("mean", 20.0), ("inverse", 0.5)]
