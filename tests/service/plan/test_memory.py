"""Memory of calls is counted from the peak of the process."""

from __future__ import annotations

import os
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest

from service.plan import memory
from service.plan.memory import MemoryUse, UncountedMemoryError, count_memory
from service.plan.workload import Workload
from service.settings import Settings

MIB = 2**20
WORKLOAD = Workload(2, 64, 900_000, 4, (0.1, 0.9))


def test_each_further_cell_takes_its_share_of_the_growth():
    assert MemoryUse(400, one_cell=10, most_cells=320, cells=32).per_cell == 10
    assert MemoryUse(400, one_cell=10, most_cells=5, cells=32).per_cell == 0
    assert MemoryUse(400, one_cell=10, most_cells=10, cells=1).per_cell == 10


@pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK), reason="the system tells no peak"
)
def test_what_a_call_takes_and_gives_back_is_seen():
    def take() -> None:
        np.ones(64 * MIB, dtype=np.uint8)

    assert 60 * MIB <= memory._growth(take) <= 80 * MIB


def test_where_the_system_tells_no_peak_nothing_is_made_up(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "_RESET", tmp_path / "missing")
    assert count_memory(Settings(), WORKLOAD, 32) is None


def test_a_process_that_dies_says_what_to_do(monkeypatch, tmp_path):
    class Dying:
        def __init__(self, *_, **__):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def submit(self, *_):
            raise BrokenProcessPool("gone")

    (tmp_path / "reset").touch()
    monkeypatch.setattr(memory, "_RESET", tmp_path / "reset")
    monkeypatch.setattr(memory, "ProcessPoolExecutor", Dying)
    with pytest.raises(UncountedMemoryError, match="try a shorter --context"):
        count_memory(Settings(), WORKLOAD, 32)
