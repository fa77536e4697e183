"""Made-up cells are ones that the service's own codecs read."""

from __future__ import annotations

import numpy as np
import pytest

from kpi.catalogue import load_catalogue
from service.codecs.json_requests import decode_histories
from service.plan.workload import Workload, WorkloadError
from service.schemas import ForecastRequest
from service.series import SeriesLimits, to_windows

WORKLOAD = Workload(kpis=3, history_steps=200, step_ms=1_000, horizon=4, levels=(0.1, 0.9))


def test_a_body_says_the_very_windows():
    catalogue = load_catalogue()
    windows = WORKLOAD.windows(4, catalogue)
    request = decode_histories(WORKLOAD.body(windows), ForecastRequest)
    named = to_windows(request.series, SeriesLimits(4, 3), catalogue, "UTC")
    assert request.horizon == 4
    for window, read in zip(windows, named, strict=True):
        assert read.window.kpis == window.kpis
        assert (read.window.start_ms, read.window.step_ms) == (window.start_ms, 1_000)
        np.testing.assert_array_equal(read.window.values, window.values)


def test_cells_differ_and_have_gaps_as_real_ones():
    one, other = WORKLOAD.windows(2, load_catalogue())
    assert one.values.shape == (3, 200)
    assert not np.array_equal(one.values, other.values, equal_nan=True)
    assert 0 < one.missing_ratio < 0.1


@pytest.mark.parametrize("name", ["kpis", "history_steps", "step_ms", "horizon"])
def test_what_is_not_above_0_is_refused_by_its_name(name):
    numbers = {"kpis": 1, "history_steps": 1, "step_ms": 1, "horizon": 1, name: 0}
    with pytest.raises(WorkloadError, match=f"expected {name.replace('_', ' ')} of at least 1"):
        Workload(**numbers, levels=(0.5,))


def test_more_kpis_than_there_are_names_for_are_refused():
    many = Workload(100_000, 10, 1_000, 1, (0.5,))
    with pytest.raises(WorkloadError, match=r"expected at most the catalogue's \d+ KPIs"):
        many.windows(1, load_catalogue())
