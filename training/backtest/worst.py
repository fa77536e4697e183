"""The cells where the model under test loses most, found in one pass with bounded memory."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Mapping

from model.accuracy import Accuracy
from training.backtest.result import WorstCell

MOST_CELLS = 20


class WorstCells:
    """Keeps the cells with the greatest error of each KPI; the sums of all others are let go."""

    def __init__(self, model: str, most: int = MOST_CELLS) -> None:
        self._model = model
        self._most = most
        self._errors: dict[str, float] = defaultdict(float)
        self._heaps: dict[str, list[tuple[float, int, WorstCell]]] = defaultdict(list)
        self._count = 0

    def add(self, cell: str, kpi: str, by_model: Mapping[str, Accuracy]) -> None:
        """Take a cell's scores over the whole horizon, by model."""
        own = by_model[self._model]
        if not own.targets:
            return
        error = float(own.pinball.mean())
        best = min(by_model, key=lambda model: _or_last(by_model[model].wql))
        self._errors[kpi] += error
        self._count += 1
        # Of equal errors the earlier cell is the worse: the count breaks ties, so that nothing
        # depends on how a heap is built.
        entry = error, -self._count, WorstCell(cell, kpi, own, 0.0, best, by_model[best].wql)
        heap = self._heaps[kpi]
        if len(heap) < self._most:
            heapq.heappush(heap, entry)
        else:
            heapq.heappushpop(heap, entry)

    def found(self) -> list[WorstCell]:
        """By KPI, the greatest error first, with each cell's share of all error of its KPI."""
        return [
            WorstCell(
                entry.cell,
                kpi,
                entry.accuracy,
                error / self._errors[kpi] if self._errors[kpi] > 0 else 0.0,
                entry.best_model,
                entry.best_wql,
            )
            for kpi in sorted(self._heaps)
            for error, _, entry in sorted(self._heaps[kpi], reverse=True, key=lambda e: e[:2])
        ]


def _or_last(wql: float) -> float:
    return math.inf if math.isnan(wql) else wql
