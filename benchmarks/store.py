"""The bounded store: merging a reporting period, reading a window, and the memory of a cell.

Every size runs in a process of its own, so that resident memory is that of the store alone. A
reporting period is 4 KPIs of every cell, merged with the journal on disk. Seconds are processor
time of the process, which is what one core takes; the time on the clock stands beside them.

Before the first merge as much memory as it will take is touched once and freed, so that its time is
that of the store and not that of a hypervisor handing out memory; `touch_seconds` says what that
took.

Memory is taken after the allocators have given back what they keep for the next merge; what it was
before stands beside it.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.harness import Result, main, run_interleaved
from kpi.catalogue import Catalogue
from kpi.journal import Journal
from kpi.observation import ObservationBatch
from kpi.store import KpiStore, StoreLimits

KPIS = ("RRU.PrbTotDl", "DRB.PdcpSduVolumeDL", "DRB.MeanActiveUeDl", "RRC.ConnMean")
PERIOD_MS = 900_000
FIRST_END_MS = 1_793_534_400_000
PERIODS = 4
CELLS = (1_000, 10_000, 100_000)
QUICK_HISTORY_STEPS = 192
WINDOW_READS = 2_000


def measure(quick: bool) -> Iterable[Result]:
    """The three figures at 100,000 cells, with those of the smaller sizes beside them."""
    limits = StoreLimits(max_cells=max(CELLS))
    if quick:
        limits = StoreLimits(max_cells=max(CELLS), history_steps=QUICK_HISTORY_STEPS)
    table = [_in_own_process(cells, limits.history_steps) for cells in CELLS]
    largest = table[-1]
    yield Result.at_most(
        "store.merge_100k_seconds",
        max(largest["first_merge_seconds"], largest["next_merge_seconds"]),
        "s",
        5.0,
        first_merge_seconds=largest["first_merge_seconds"],
        next_merge_seconds=largest["next_merge_seconds"],
        history_steps=limits.history_steps,
        first_merge_clock_seconds=largest["first_merge_clock_seconds"],
        touch_seconds=largest["touch_seconds"],
        journal="SQLite WAL, synchronous=FULL",
    )
    yield from _window()
    ratio = largest["bytes_ratio"]
    yield Result(
        "store.bytes_ratio",
        ratio,
        "x",
        "cells x stated bytes",
        1.10,
        0.90 <= ratio <= 1.10,
        {
            "stated_bytes_per_cell": limits.stated_bytes_per_cell(len(KPIS)),
            "lowest_allowed": 0.90,
            "with_working_memory": largest["bytes_ratio_with_working_memory"],
            **{f"at_{row['cells']}_cells": row["bytes_ratio"] for row in table},
        },
    )
    for row in table:
        yield Result(
            f"store.linear.{row['cells']}_cells",
            row["next_merge_seconds"] / row["cells"] * 1e6,
            "us/cell",
            detail=row,
        )


def _window() -> Iterable[Result]:
    """A full window of 4 KPIs, of one cell among many, the ring wrapped."""
    limits = StoreLimits()
    store = KpiStore(limits, Catalogue("benchmark", {}))
    names = _names(50, 0)
    for step in range(0, limits.history_steps + 100, 20):
        parts = [_period(names, step + offset) for offset in range(20)]
        store.merge(ObservationBatch.concatenate(parts))
    window = store.window(names[7])

    def read() -> None:
        for _ in range(100):
            store.window(names[7])

    seconds = run_interleaved({"window": read}, WINDOW_READS // 100, clock=time.process_time)[
        "window"
    ]
    yield Result.at_most(
        "store.window_microseconds",
        statistics.median(seconds) * 1e4,
        "us",
        50.0,
        lowest=min(seconds) * 1e4,
        kpis=len(KPIS),
        steps=window.steps,
    )


def _in_own_process(cells: int, history_steps: int) -> dict[str, Any]:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    child = subprocess.run(
        [sys.executable, "-m", "benchmarks.store", "--child", str(cells), str(history_steps)],
        cwd=Path(__file__).parent.parent,
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    row: dict[str, Any] = json.loads(child.stdout)
    return row


def _child(cells: int, history_steps: int) -> dict[str, Any]:
    """Merge a few periods of so many cells; runs alone in its process."""
    limits = StoreLimits(max_cells=cells, history_steps=history_steps)
    catalogue = Catalogue("benchmark", {})
    with tempfile.TemporaryDirectory() as folder:
        warm = KpiStore(limits, catalogue, Journal(Path(folder) / "warm.db"))
        warm.merge(_period(_names(100, 1), 0))
        warm.close()
        journal = Journal(Path(folder) / "journal.db")
        store = KpiStore(limits, catalogue, journal)
        stated = cells * store.stated_bytes_per_cell(len(KPIS))
        touch_seconds = _touch(stated)
        before = _resident_bytes()
        seconds, clock_seconds = [], []
        for step in range(PERIODS):
            batch = _period(_names(cells, 0), step)
            start, clock_start = time.process_time(), time.perf_counter()
            result = store.merge(batch)
            seconds.append(time.process_time() - start)
            clock_seconds.append(time.perf_counter() - clock_start)
            if result.accepted != len(batch):
                raise RuntimeError(f"expected {len(batch)} accepted samples, got {result}")
            del batch
        with_working_memory = _resident_bytes() - before
        _release_working_memory()
        resident = _resident_bytes() - before
        file_bytes = journal.bytes
        store.close()
    return {
        "cells": cells,
        "samples_per_period": cells * len(KPIS),
        "first_merge_seconds": seconds[0],
        "next_merge_seconds": statistics.median(seconds[1:]),
        "first_merge_clock_seconds": clock_seconds[0],
        "touch_seconds": touch_seconds,
        "resident_mib": resident / 2**20,
        "stated_mib": stated / 2**20,
        "bytes_ratio": resident / stated,
        "bytes_ratio_with_working_memory": with_working_memory / stated,
        "journal_bytes_per_sample": file_bytes / (PERIODS * cells * len(KPIS)),
    }


def _names(cells: int, network: int) -> tuple[str, ...]:
    return tuple(
        f"SubNetwork={network},ManagedElement=gnb-{number // 3},GNBDUFunction=1,NRCellDU={number}"
        for number in range(cells)
    )


def _period(names: tuple[str, ...], step: int) -> ObservationBatch:
    """One reporting period of all cells, with values of two decimals as sources print them."""
    samples = len(names) * len(KPIS)
    end_ms = FIRST_END_MS + step * PERIOD_MS
    return ObservationBatch(
        cells=names,
        kpis=KPIS,
        cell_index=np.repeat(np.arange(len(names), dtype=np.int32), len(KPIS)),
        kpi_index=np.tile(np.arange(len(KPIS), dtype=np.int32), len(names)),
        period_end_ms=np.full(samples, end_ms, dtype=np.int64),
        period_ms=np.full(samples, PERIOD_MS, dtype=np.int64),
        values=np.random.default_rng(step).gamma(2.0, 10.0, samples).round(2),
        suspect=np.zeros(samples, dtype=np.bool_),
        arrival_ms=end_ms,
    )


def _touch(size: int) -> float:
    """Seconds of processor time to write so many new bytes once."""
    start = time.process_time()
    np.ones(size, dtype=np.uint8)
    return time.process_time() - start


def _release_working_memory() -> None:
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only the GNU C library has it
    if trim is not None:
        trim(0)


def _resident_bytes() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        sys.stdout.write(json.dumps(_child(int(sys.argv[2]), int(sys.argv[3]))))
    else:
        main("store", measure)
