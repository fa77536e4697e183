"""How long a forecast takes here, on one thread, as a service runs it by default."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import torch

WARM_UPS, TIMED = 3, 9


def medians_ms(calls: Sequence[Callable[[], object]]) -> list[float]:
    """Median wall time of each call, taken in turns."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        rounds = [[_seconds(call) for call in calls] for _ in range(WARM_UPS + TIMED)]
    finally:
        torch.set_num_threads(threads)
    return [statistics.median(times) * 1000 for times in zip(*rounds[WARM_UPS:], strict=True)]


def _seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin
