"""Quantiles are sorted, interpolated and clamped, without changing their meaning."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kpi.catalogue import Kpi, KpiKind
from model.errors import LevelError
from model.quantiles import at_levels, check_levels, uninformed, within_limits

TRAINED = (0.1, 0.3, 0.5, 0.7, 0.9)
ROWS = hnp.arrays(np.float64, (4, 5), elements=st.floats(-100, 100))


@given(ROWS)
def test_crossing_quantiles_come_out_sorted(rows):
    found = at_levels(torch.from_numpy(rows), TRAINED, TRAINED).numpy()
    np.testing.assert_allclose(found, np.sort(rows, axis=-1), atol=1e-9)


@given(ROWS, st.lists(st.floats(0.1, 0.9), min_size=1, max_size=6, unique=True))
def test_levels_in_between_match_linear_interpolation(rows, levels):
    levels = sorted(levels)
    found = at_levels(torch.from_numpy(rows), TRAINED, levels).numpy()
    expected = [np.interp(levels, TRAINED, row) for row in np.sort(rows, axis=-1)]
    np.testing.assert_allclose(found, expected, atol=1e-9)


@given(ROWS)
def test_clamping_keeps_the_order(rows):
    ordered = torch.from_numpy(np.sort(rows, axis=-1))[None, None]
    low, high = torch.tensor([[-5.0]]).double(), torch.tensor([[20.0]]).double()
    found = within_limits(ordered, low, high)
    assert (found.diff(dim=-1) >= 0).all()
    assert found.min() >= -5
    assert found.max() <= 20


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ([], "at least one"),
        ([0.05], "0.1 to 0.9"),
        ([0.5, 0.95], "0.1 to 0.9"),
        ([0.5, 0.3], "asc"),
    ],
)
def test_bad_levels_are_refused_with_what_is_possible(levels, message):
    with pytest.raises(LevelError, match=message):
        check_levels(levels, 0.1, 0.9)


def test_nothing_seen_between_known_limits_is_uniform():
    kpi = Kpi("x", "%", KpiKind.PERCENT, 0.0, 200.0)
    np.testing.assert_allclose(uninformed(kpi, [0.1, 0.5]), [20, 100])


@pytest.mark.parametrize("limits", [(None, None), (0.0, None), (None, 1.0)])
def test_nothing_seen_without_both_limits_says_nothing(limits):
    assert np.isnan(uninformed(Kpi("x", "", KpiKind.GAUGE, *limits), [0.1, 0.5])).all()
