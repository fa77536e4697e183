"""Results do not depend on how many processes made them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch

from model.baseline import SeasonalBaseline
from model.checkpoint import Checkpoint
from model.forecaster import Forecaster
from model.transformer import TransformerPredictor
from training.backtest import Backtest, BacktestConfig, BacktestResult, CellScore, backtest
from training.opponents import make_opponents

CONFIG = BacktestConfig(horizon=6, max_origins=25)


@pytest.fixture
def predictors(tiny_config, catalogue):
    torch.manual_seed(0)
    checkpoint = Checkpoint("tiny", "1", tiny_config, Forecaster(tiny_config).state_dict(), "1")
    return [
        TransformerPredictor(checkpoint, catalogue),
        SeasonalBaseline(catalogue),
        *make_opponents(["auto-theta"], catalogue),
    ]


def _keeper(progress: list[int]) -> Callable[[int, int], None]:
    return lambda done, _total: progress.append(done)


def _cells(kept: list[tuple[str, str, float]]) -> Callable[[Sequence[CellScore]], None]:
    return lambda scores: kept.extend(
        (entry.cell, entry.score.model, entry.score.accuracy.wql) for entry in scores
    )


def numbers(result: BacktestResult) -> list[object]:
    """All that was found but for times."""
    scores = [
        (s.model, s.kpi, s.first_lead, s.accuracy.targets, s.accuracy.pinball.tolist())
        for s in result.scores
    ]
    hours = {key: errors.error.tolist() for key, errors in result.hours.items()}
    worst = [(cell.cell, cell.kpi, cell.error_ratio) for cell in result.worst]
    examples = [example.forecast.values.tolist() for example in result.examples]
    return [scores, hours, worst, examples, result.fallbacks, result.series, result.skipped]


def test_two_processes_find_to_the_bit_what_one_finds(make_window, predictors):
    windows = [make_window(seed, steps=150 + 30 * seed) for seed in range(9)]
    windows[2].values[:, 20:60] = np.nan
    windows[3].values[:] = 7
    found = []
    for jobs in (1, 2):
        progress: list[int] = []
        cells: list[tuple[str, str, float]] = []
        how = Backtest(jobs, on_progress=_keeper(progress), on_cell=_cells(cells))
        result = backtest(predictors, windows, CONFIG, how)
        assert len(progress) == 2, "expected two chunks to share out"
        assert progress == sorted(progress)
        found.append([numbers(result), cells])
    assert found[0] == found[1]


def test_the_number_of_threads_is_put_back(make_window, catalogue):
    threads = torch.get_num_threads()
    backtest([SeasonalBaseline(catalogue)], [make_window()], CONFIG)
    assert torch.get_num_threads() == threads
