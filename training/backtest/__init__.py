"""Backtest: forecast from many past origins and compare with what came.

Every forecaster sees the same windows: the samples before an origin and nothing after it. Origins
roll through the last part of each cell's history, so a cell is tested on days after its context;
forecasters that learn from the data are given what lies before the first origin.
"""

from training.backtest.config import BacktestConfig, lead_buckets, origins_of, training_part
from training.backtest.hours import HourlyErrors
from training.backtest.result import BacktestResult, CellScore, Example, Score, Skipped, WorstCell
from training.backtest.run import Backtest, Trainable, backtest

__all__ = [
    "Backtest",
    "BacktestConfig",
    "BacktestResult",
    "CellScore",
    "Example",
    "HourlyErrors",
    "Score",
    "Skipped",
    "Trainable",
    "WorstCell",
    "backtest",
    "lead_buckets",
    "origins_of",
    "training_part",
]
