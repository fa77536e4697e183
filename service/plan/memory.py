"""Memory: of the process with its model, and of each cell in a call of it.

What is counted is resident memory, in a process of its own that loads, makes one call of one cell
and one of many, and ends. In a process that has made calls before, the allocator would still hold
what those gave back, and a call would seem to need nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from service.errors import ServiceError
from service.plan.subject import load_subject
from service.plan.workload import Workload
from service.settings import Settings

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_FORGET_PEAK = "5"  # proc(5)
_KIB = 1024


class UncountedMemoryError(ServiceError):
    """The process that counts memory died; the message says what to do."""


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes of resident memory.

    Attributes:
        loaded: Of a process that has the service's code and its model, and has answered one cell.
        one_cell: By how much it grew at most in a call of one cell.
        most_cells: By how much in a call of `cells` cells.
        cells: Cells in the larger call.
    """

    loaded: int
    one_cell: int
    most_cells: int
    cells: int

    @property
    def per_cell(self) -> float:
        """What each further cell in a call takes, at its peak."""
        if self.cells < 2:
            return float(self.one_cell)
        return max(0, self.most_cells - self.one_cell) / (self.cells - 1)


def count_memory(
    settings: Settings, workload: Workload, cells: int, context_steps: int | None = None
) -> MemoryUse | None:
    """Count in a process of its own; it takes as long as loading the model.

    Args:
        settings: Which model, and how it is run.
        workload: What its cells look like.
        cells: Cells in the larger call.
        context_steps: Bound of the context, None for the checkpoint's own.

    Returns:
        The bytes; None where the system does not tell the peak of a process (Linux does).

    Raises:
        ServiceError: The model cannot be loaded, or the process died.
    """
    if not os.access(_RESET, os.W_OK):
        return None
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            counting = pool.submit(_count, settings, workload, cells, context_steps)
            return counting.result()
        except BrokenProcessPool as error:
            raise UncountedMemoryError(
                f"the process that counts the memory of a call of {cells} cells died, perhaps for "
                "want of memory; try a shorter --context or fewer --kpis"
            ) from error


def _count(
    settings: Settings, workload: Workload, cells: int, context_steps: int | None
) -> MemoryUse:
    import service.app  # noqa: F401  a service has all of it in memory

    subject = load_subject(settings, context_steps)
    ladder, _ = subject.rungs()
    windows = workload.windows(cells, subject.catalogue)
    predictor = ladder.predictor

    def call(count: int) -> None:
        predictor.predict(windows[:count], workload.horizon, workload.levels)

    call(1)
    loaded = _resident("VmRSS")
    return MemoryUse(
        loaded=loaded,
        one_cell=_growth(lambda: call(1)),
        most_cells=_growth(lambda: call(cells)),
        cells=cells,
    )


def _growth(call: Callable[[], None]) -> int:
    """Bytes by which the process is larger at the peak of a call than before it."""
    _RESET.write_text(_FORGET_PEAK, encoding="ascii")
    before = _resident("VmRSS")
    call()
    return max(0, _resident("VmHWM") - before)


def _resident(field: str) -> int:
    for line in _STATUS.read_text(encoding="ascii", errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * _KIB
    raise UncountedMemoryError(f"expected a line {field} in {_STATUS}, found none")
