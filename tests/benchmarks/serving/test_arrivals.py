"""Arrivals are a Poisson process that is drawn beforehand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.serving.arrivals import poisson_arrivals


@given(rate=st.floats(0, 2_000), seconds=st.floats(0, 5), seed=st.integers(0, 2**32 - 1))
def test_arrivals_ascend_and_lie_within_the_run(rate: float, seconds: float, seed: int) -> None:
    planned = poisson_arrivals(rate, seconds, seed)
    assert (np.diff(planned) >= 0).all()
    assert ((planned >= 0) & (planned <= seconds)).all()


def test_one_seed_gives_the_same_arrivals_and_another_gives_others() -> None:
    first = poisson_arrivals(100, 2, (3, 1))
    assert (poisson_arrivals(100, 2, (3, 1)) == first).all()
    assert not np.array_equal(poisson_arrivals(100, 2, (3, 2)), first)


def test_gaps_are_exponential_with_the_stated_rate() -> None:
    gaps = np.diff(poisson_arrivals(1_000, 60, 0))
    assert gaps.mean() == pytest.approx(1e-3, rel=0.02)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.02)
    assert (gaps > 1e-3).mean() == pytest.approx(np.exp(-1), abs=0.01)


def test_counts_of_disjoint_spans_vary_as_their_mean() -> None:
    counts, _ = np.histogram(poisson_arrivals(50, 1_000, 1), bins=1_000, range=(0, 1_000))
    assert counts.mean() == pytest.approx(50, rel=0.02)
    assert counts.var() == pytest.approx(50, rel=0.15)


def test_a_negative_rate_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        poisson_arrivals(-1, 1, 0)
