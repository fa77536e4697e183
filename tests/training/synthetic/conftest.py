"""Cells for which nothing is planned, for tests of everything else."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from training.synthetic.planned import DAYS_BEFORE, Planned
from training.synthetic.timing import DAY_MS, Clock


@pytest.fixture(scope="session")
def unplanned() -> Callable[[Clock], Planned]:
    """Neither holidays nor events for the series of a clock."""

    def make(clock: Clock) -> Planned:
        days = clock.length * clock.step_ms // DAY_MS + DAYS_BEFORE + 3
        no_days = np.zeros((clock.rows, days), dtype=np.bool_)
        no_load = np.zeros((clock.rows, clock.length), dtype=np.float32)
        first_day = clock.start_ms // DAY_MS - DAYS_BEFORE
        return Planned(first_day, no_days, no_load, no_days, no_load)

    return make
