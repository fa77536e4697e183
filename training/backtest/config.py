"""What to test, from which origins, and what may be learnt from before."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kpi.window import KpiWindow
from training.dataset import cut_in_time, known_at
from training.errors import DataError

MAX_LEAD_BUCKETS = 8


@dataclass(frozen=True)
class BacktestConfig:
    """What to test.

    Attributes:
        horizon: Steps to forecast.
        levels: Quantile levels; coverage is that of the outermost ones.
        test_ratio: Share of each cell's history, at its end, that origins roll through.
        stride: Steps between origins, the horizon by default.
        max_origins: Most origins a cell, spread evenly.
        min_context_steps: Least history before an origin.
    """

    horizon: int = 24
    levels: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    test_ratio: float = 0.3
    stride: int | None = None
    max_origins: int = 50
    min_context_steps: int = 32

    def __post_init__(self) -> None:
        if self.horizon < 1:
            raise DataError(f"expected a horizon of at least 1 step, got {self.horizon}")
        if not 0 < self.test_ratio < 1:
            raise DataError(f"expected a test ratio between 0 and 1, got {self.test_ratio}")
        if self.stride is not None and self.stride < 1:
            raise DataError(f"expected a stride of at least 1 step, got {self.stride}")
        if self.max_origins < 1:
            raise DataError(f"expected at least one origin a cell, got {self.max_origins}")

    @property
    def enough_steps(self) -> int:
        """A history of this many samples has an origin."""
        in_test_part = math.ceil((self.horizon + 0.5) / self.test_ratio)
        return max(self.min_context_steps + self.horizon, in_test_part)

    @property
    def nominal_coverage(self) -> float:
        """Share of values that the outermost levels promise to hold, 0 to 1."""
        return self.levels[-1] - self.levels[0]


def origins_of(window: KpiWindow, config: BacktestConfig) -> list[int]:
    """Positions in the window from which to forecast, in ascending order."""
    first = max(config.min_context_steps, cut_in_time(window, config.test_ratio))
    stride = config.stride or config.horizon
    origins = list(range(first, window.steps - config.horizon + 1, stride))
    if len(origins) > config.max_origins:
        picks = np.linspace(0, len(origins) - 1, config.max_origins).round().astype(int)
        origins = [origins[pick] for pick in picks]
    return origins


def training_part(window: KpiWindow, config: BacktestConfig) -> KpiWindow:
    """What lies before a window's first origin; up to its test part where it has no origin."""
    origins = origins_of(window, config)
    end = origins[0] if origins else cut_in_time(window, config.test_ratio)
    return known_at(window, end)


def lead_buckets(horizon: int) -> list[tuple[int, int]]:
    """The horizon cut into at most eight runs of leads, shorter near the origin."""
    edges = np.unique(np.geomspace(1, horizon + 1, MAX_LEAD_BUCKETS + 1).round().astype(int))
    return [(int(a), int(b) - 1) for a, b in pairwise(edges)]
