"""The groups of token inputs that tell of long memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from model.calendar import CALENDAR_WIDTH
from model.config import ForecasterConfig
from model.planned import planned_width
from model.tokens import MONTH_LEVELS, Series, build_tokens, token_width

HOUR_MS = 3_600_000
DAY_STEPS = 24
PATCH = 16
CONFIG = ForecasterConfig(
    width=8, layers=1, heads=1, feedforward=8, context_patches=42, inputs=("month_quantiles",)
)


def series_of(values: np.ndarray, *, future_patches: int = 2, step_ms: int = HOUR_MS) -> Series:
    """One KPI (T,) as a batch of one."""
    patches = 42 + future_patches
    return Series(
        values=torch.from_numpy(values.astype(np.float32))[None, None],
        step_ms=step_ms,
        calendar=torch.zeros(1, patches, CALENDAR_WIDTH),
        planned=torch.zeros(1, patches, planned_width(PATCH)),
        kinds=torch.zeros(1, 1, dtype=torch.int64),
        lower=torch.zeros(1, 1),
        upper=torch.full((1, 1), torch.inf),
        present=torch.ones(1, 1, dtype=torch.bool),
    )


def four_weeks(seed: int = 0) -> np.ndarray:
    """Hours that are quiet at night: about 3 against 1,000."""
    rng = np.random.default_rng(seed)
    hour = np.arange(28 * DAY_STEPS) % DAY_STEPS
    return np.where(hour < 6, 3.0, 1000.0) * rng.lognormal(0, 1, len(hour))


def month_inputs(values: np.ndarray, **how) -> torch.Tensor:
    """(N, 2, L, P): both spaces, levels, samples."""
    tokens = build_tokens(series_of(values, **how), CONFIG, 2)
    return tokens.inputs[0, 0].reshape(-1, 2, len(MONTH_LEVELS), PATCH)


def test_the_context_is_told_no_quantiles():
    assert (month_inputs(four_weeks())[:42] == 0).all()


def test_a_future_hour_is_told_how_the_last_month_was_spread_at_it():
    values = four_weeks()
    at_three = values.reshape(28, DAY_STEPS)[:, 3]
    told = month_inputs(values)[42, 0, :, 3]
    mean, spread = values.mean(), values.std()
    expected = np.arcsinh((np.quantile(at_three, MONTH_LEVELS) - mean) / spread)
    np.testing.assert_allclose(told.numpy(), expected, atol=2e-3)


def test_quiet_hours_that_differ_are_told_apart_in_the_space_around_zero():
    values = four_weeks()
    quieter = values.copy()
    quieter[np.arange(len(values)) % DAY_STEPS < 6] /= 3
    change = (month_inputs(values) - month_inputs(quieter))[42, :, 1, 0].abs()
    assert change[1] > 5 * change[0]


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_unit_of_a_kpi_does_not_show(factor):
    torch.testing.assert_close(
        month_inputs(four_weeks() * factor), month_inputs(four_weeks()), rtol=1e-3, atol=1e-4
    )


def test_an_unseen_hour_and_a_step_without_days_are_told_nothing():
    values = four_weeks()
    values[np.arange(len(values)) % DAY_STEPS == 5] = np.nan
    told = month_inputs(values)[42:]
    assert (told[0, :, :, 5] == 0).all()
    assert (told[0, 0, :, 4] != 0).all()
    assert (month_inputs(four_weeks(), step_ms=7 * 86_400_000) == 0).all()


def test_a_series_of_zeros_is_told_zeros_and_no_nan():
    assert (month_inputs(np.zeros(672)) == 0).all()


def test_the_width_is_that_of_the_groups_chosen():
    every = replace(CONFIG, inputs=ForecasterConfig().inputs)
    for config in (CONFIG, every):
        tokens = build_tokens(series_of(four_weeks()), config, 2)
        assert tokens.inputs.shape[-1] == token_width(config)
