"""What a backtest found: scores, worst cells, errors by hour, examples, and what was left out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kpi.window import KpiWindow
from model.accuracy import Accuracy
from model.predictor import Forecast
from training.backtest.config import BacktestConfig
from training.backtest.hours import HourlyErrors


@dataclass(frozen=True)
class Score:
    """One line of the result.

    Attributes:
        model: Name of the forecaster.
        kpi: Name of the KPI.
        first_lead: First step of the horizon that this line counts.
        last_lead: Last one.
        accuracy: The sums.
    """

    model: str
    kpi: str
    first_lead: int
    last_lead: int
    accuracy: Accuracy

    @property
    def leads(self) -> str:
        """The steps ahead that this line counts, in words."""
        one = self.first_lead == self.last_lead
        return str(self.first_lead) if one else f"{self.first_lead} to {self.last_lead}"


@dataclass(frozen=True)
class CellScore:
    """A score of one cell alone.

    Attributes:
        cell: Name of the cell.
        step_seconds: Its sampling step.
        score: By model, KPI and leads.
    """

    cell: str
    step_seconds: float
    score: Score


@dataclass(frozen=True)
class WorstCell:
    """A cell on which the first forecaster loses much.

    Attributes:
        cell: Name of the cell.
        kpi: Name of the KPI.
        accuracy: Sums of the first forecaster over the whole horizon.
        error_ratio: Its share of the first forecaster's error over all cells of the KPI, 0 to 1.
        best_model: Who did best on this cell.
        best_wql: That forecaster's WQL on it.
    """

    cell: str
    kpi: str
    accuracy: Accuracy
    error_ratio: float
    best_model: str
    best_wql: float


@dataclass(frozen=True)
class Example:
    """One window with its forecast and what came, for a plot."""

    window: KpiWindow
    forecast: Forecast
    actual: NDArray[np.float32]


@dataclass(frozen=True)
class Skipped:
    """A cell that could not be tested, and why."""

    cell: str
    reason: str


@dataclass(frozen=True)
class BacktestResult:
    """How the forecasters did.

    Attributes:
        config: What was tested.
        scores: By model, KPI and leads; the model under test first.
        examples: A few forecasts of the first model.
        cells: Number of cells.
        origins: Number of origins over all cells.
        step_seconds: The sampling steps of the cells.
        hours: Errors by model and KPI over the local day, for steps from a minute to a day.
        worst: Where the first model lost most, by KPI, the worst first.
        fallbacks: By model, how many series of a window it could not forecast itself, so that the
            last value answered for it.
        series: How many series of a window each model was asked for.
        notes: By model, what a reader has to know about it.
        skipped: Cells without an origin, and without a value to test on.
        fit_seconds: By model, seconds that learning from the data took.
        predict_seconds: By model, seconds that its forecasts took, of all processes together.
    """

    config: BacktestConfig
    scores: Sequence[Score]
    examples: Sequence[Example]
    cells: int
    origins: int
    step_seconds: tuple[float, ...]
    hours: Mapping[tuple[str, str], HourlyErrors] = field(default_factory=dict)
    worst: Sequence[WorstCell] = ()
    fallbacks: Mapping[str, int] = field(default_factory=dict)
    series: int = 0
    notes: Mapping[str, str] = field(default_factory=dict)
    skipped: Sequence[Skipped] = ()
    fit_seconds: Mapping[str, float] = field(default_factory=dict)
    predict_seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """Name of the first model, which is the one under test."""
        return self.scores[0].model

    @property
    def models(self) -> list[str]:
        """Names of all models, the one under test first."""
        return list(dict.fromkeys(line.model for line in self.scores))

    @property
    def kpis(self) -> list[str]:
        """Names of the KPIs, in alphabetical order."""
        return sorted({line.kpi for line in self.scores})

    def overall(self) -> list[Score]:
        """Scores over the whole horizon, one a model and KPI, best WQL first within a KPI."""
        sums: dict[tuple[str, str], Accuracy] = {}
        for score in self.scores:
            key = score.kpi, score.model
            sums[key] = sums[key] + score.accuracy if key in sums else score.accuracy
        lines = [
            Score(model, kpi, 1, self.config.horizon, total) for (kpi, model), total in sums.items()
        ]
        return sorted(lines, key=_best_first)

    def by_lead(self, model: str, kpi: str) -> list[Score]:
        """The lines of one model and KPI, by steps ahead."""
        lines = [line for line in self.scores if (line.model, line.kpi) == (model, kpi)]
        return sorted(lines, key=lambda line: line.first_lead)


def _best_first(line: Score) -> tuple[str, bool, float]:
    """Order of the lines of a KPI; a WQL that is no number, since all targets are zero, is last."""
    wql = line.accuracy.wql
    return line.kpi, math.isnan(wql), 0.0 if math.isnan(wql) else wql
