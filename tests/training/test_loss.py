"""The pinball loss against its definition, and what minimises it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from training.loss import pinball

LEVELS = (0.1, 0.5, 0.9)


@given(st.integers(0, 10_000))
def test_it_is_twice_the_mean_pinball_loss(seed):
    rng = np.random.default_rng(seed)
    quantiles, target = rng.normal(size=(2, 1, 4, 3)), rng.normal(size=(2, 1, 4))
    costs = [
        max(level * (y - q), (level - 1) * (y - q))
        for row, y in zip(quantiles.reshape(-1, 3), target.reshape(-1), strict=True)
        for level, q in zip(LEVELS, row, strict=True)
    ]
    found = pinball(torch.from_numpy(quantiles), torch.from_numpy(target), LEVELS)
    assert float(found) == pytest.approx(2 * np.mean(costs))


def test_missing_targets_cost_nothing_and_get_no_gradient():
    quantiles = torch.zeros(1, 1, 2, 3, requires_grad=True)
    pinball(quantiles, torch.tensor([[[1.0, torch.nan]]]), LEVELS).backward()
    assert quantiles.grad is not None
    assert quantiles.grad[0, 0, 0].abs().sum() > 0
    assert quantiles.grad[0, 0, 1].abs().sum() == 0


def test_a_batch_without_targets_costs_zero():
    assert float(pinball(torch.zeros(1, 1, 2, 3), torch.full((1, 1, 2), torch.nan), LEVELS)) == 0


def test_its_minimum_is_the_quantile():
    values = torch.linspace(0, 1, 1001)[None, None]
    candidates = [0.05, 0.1, 0.15]
    costs = [float(pinball(torch.full((1, 1, 1001, 1), c), values, (0.1,))) for c in candidates]
    assert min(costs) == costs[1]
