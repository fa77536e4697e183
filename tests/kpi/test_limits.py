"""What the store may hold: sane limits, stated bytes, and memory that keeps to them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kpi.catalogue import Catalogue
from kpi.store import KpiStore, StoreLimits


def test_stated_bytes_follow_from_the_configuration():
    limits = StoreLimits(history_steps=1440)
    one, two = (KpiStore(limits, Catalogue("test", {})).stated_bytes_per_cell(k) for k in (1, 2))
    assert two - one == 1440 * 4 + 8
    assert one < 1440 * 4 + 600
    cumulative = limits.stated_bytes_per_cell(2, cumulative_kpis=1)
    assert cumulative - two == 1440 * 4
    assert limits.stated_bytes_per_cell(2, steps=2) > 2 * two - 600


RESIDENT = """
import gc
from pathlib import Path
import numpy as np
from kpi.catalogue import Catalogue
from kpi.observation import ObservationBatch
from kpi.store import KpiStore, StoreLimits

def merge(store, cells):
    n = 4 * len(cells)
    store.merge(ObservationBatch(
        cells, ("a", "b", "c", "d"), np.repeat(np.arange(len(cells), dtype=np.int32), 4),
        np.tile(np.arange(4, dtype=np.int32), len(cells)), np.full(n, 900_000_000),
        np.full(n, 900_000), np.ones(n), np.zeros(n, np.bool_), 900_000_000))

def resident():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

catalogue = Catalogue("test", {})
warm, store = (KpiStore(StoreLimits(), catalogue) for _ in range(2))
merge(warm, tuple(f"ManagedElement=1,NRCellDU={number}" for number in range(500)))
before = resident()
for start in range(0, 4000, 500):
    merge(store, tuple(f"ManagedElement=2,NRCellDU={start + number}" for number in range(500)))
print((resident() - before) / store.stored_bytes)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_resident_memory_is_the_stated_bytes_within_a_tenth():
    child = subprocess.run(
        [sys.executable, "-c", RESIDENT],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert 0.9 < float(child.stdout) < 1.1


@pytest.mark.parametrize(
    "limits",
    [
        {"max_cells": 0},
        {"history_steps": -1},
        {"max_future_seconds": float("nan")},
        {"snap_tolerance_ratio": 0.6},
        {"max_kpi_names": 40_000},
    ],
)
def test_limits_that_make_no_sense_are_refused_by_name(limits):
    with pytest.raises(ValueError, match=next(iter(limits))):
        StoreLimits(**limits)
