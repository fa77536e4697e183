"""The backtest as tables for programs: tidy CSV, one line a thing measured.

Sums stand beside the ratios, so that lines can be added up: WQL of several lines is the sum of
`pinball` over the sum of `absolute_target`, MASE that of `scaled_error` over `scaled_values`.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from model.accuracy import Accuracy
from training.backtest import BacktestResult, CellScore, HourlyErrors

SCORES_COLUMNS = (
    "model",
    "kpi",
    "cell",
    "step_seconds",
    "first_lead",
    "last_lead",
    "values",
    "wql",
    "mase",
    "wape",
    "coverage",
    "mean_width",
    "relative_width",
    "absolute_target",
    "pinball",
    "absolute_error",
    "inside",
    "width",
    "scaled_error",
    "scaled_values",
)
HOURS_COLUMNS = (
    "model",
    "kpi",
    "hour",
    "values",
    "mean_error",
    "mean_absolute_error",
    "mean_absolute_target",
)
WORST_COLUMNS = (
    "kpi",
    "cell",
    "error_ratio",
    "values",
    "wql",
    "wape",
    "coverage",
    "best_model",
    "best_wql",
)


class ScoresTable:
    """Scores by model, KPI, cell and leads, written cell by cell as they are known.

    The file appears under its name once all is written; a run that fails leaves none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._partial = path.with_name(f"{path.name}.part")
        self._file: TextIO | None = None

    def __enter__(self) -> ScoresTable:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._partial.open("w", encoding="utf-8", newline="")
        csv.writer(self._file).writerow(SCORES_COLUMNS)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()
        if kind is None:
            self._partial.replace(self._path)
        else:
            self._partial.unlink(missing_ok=True)

    def add(self, scores: Sequence[CellScore]) -> None:
        """Write the lines of one cell."""
        if self._file is None:
            raise ValueError("expected a table that was entered by `with`, got a closed one")
        writer = csv.writer(self._file)
        for entry in scores:
            line = entry.score
            writer.writerow(
                [
                    line.model,
                    line.kpi,
                    entry.cell,
                    f"{entry.step_seconds:g}",
                    line.first_lead,
                    line.last_lead,
                    *_ratios_and_sums(line.accuracy),
                ]
            )


def write_hours(result: BacktestResult, path: Path) -> None:
    """Errors by model, KPI and local hour; only the head where the step has no hours."""
    lines: list[list[Any]] = []
    for (model, kpi), errors in result.hours.items():
        lines += [[model, kpi, hour, *_hour(errors, hour)] for hour in range(24)]
    _write(path, HOURS_COLUMNS, lines)


def write_worst(result: BacktestResult, path: Path) -> None:
    """The cells where the model under test loses most, by KPI."""
    lines = [
        [
            entry.kpi,
            entry.cell,
            _plain(entry.error_ratio),
            entry.accuracy.targets,
            _plain(entry.accuracy.wql),
            _plain(entry.accuracy.wape),
            _plain(entry.accuracy.coverage),
            entry.best_model,
            _plain(entry.best_wql),
        ]
        for entry in result.worst
    ]
    _write(path, WORST_COLUMNS, lines)


def _ratios_and_sums(accuracy: Accuracy) -> list[Any]:
    ratios = (
        accuracy.wql,
        accuracy.mase,
        accuracy.wape,
        accuracy.coverage,
        accuracy.mean_width,
        accuracy.relative_width,
        accuracy.absolute_target,
        float(accuracy.pinball.mean()),
        accuracy.absolute_error,
    )
    return [
        accuracy.targets,
        *(_plain(ratio) for ratio in ratios),
        accuracy.inside,
        _plain(accuracy.width),
        _plain(accuracy.scaled_error),
        accuracy.scaled_targets,
    ]


def _hour(errors: HourlyErrors, hour: int) -> list[Any]:
    means = (errors.bias, errors.mean_absolute_error, errors.mean_target)
    return [int(errors.targets[hour]), *(_plain(float(mean[hour])) for mean in means)]


def _write(path: Path, columns: Sequence[str], lines: Sequence[Sequence[Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(lines)


def _plain(value: float) -> str:
    """Shortest digits that give the number back; nothing where it is none."""
    return "" if math.isnan(value) else repr(float(value))
