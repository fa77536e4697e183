"""A refusal holds for those that look like it, until they could be in time."""

from __future__ import annotations

import pytest

from service.engine.refusals import Refusal, Refusals

REFUSAL = Refusal(expires_s=10.0, late_s=0.02, own_s=0.005)


@pytest.fixture
def refusals():
    kept = Refusals()
    kept.keep("like", REFUSAL, 7)
    return kept


def test_who_comes_later_is_late_by_as_much_less(refusals):
    found = refusals.find("like", 10.015, 7)
    assert found is not None
    assert found.late_s == pytest.approx(0.005)
    assert found.own_s == REFUSAL.own_s


@pytest.mark.parametrize(
    ("asked", "expires_s", "moves"),
    [
        ("like", 10.021, 7),  # in time by then
        ("like", 9.999, 7),  # it may go before what has been planned
        ("like", 10.0, 8),  # the lane moved on
        ("another", 10.0, 7),
        (None, 10.0, 7),
    ],
)
def test_it_does_not_hold_for_others(refusals, asked, expires_s, moves):
    assert refusals.find(asked, expires_s, moves) is None


def test_it_holds_for_a_short_time_only():
    kept = Refusals()
    kept.keep("like", Refusal(10.0, 60.0, 60.0), 7)
    assert kept.find("like", 10.04, 7) is not None
    assert kept.find("like", 10.06, 7) is None


def test_only_so_many_are_kept():
    kept = Refusals()
    for number in range(10_000):
        kept.keep(number, REFUSAL, 7)
    assert sum(kept.find(number, 10.0, 7) is not None for number in range(10_000)) <= 256
