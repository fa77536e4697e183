"""Conformity: how a forecaster's quantiles stood to what came, the material of a calibration.

Axis legend: B windows, K KPIs, H steps of the horizon, Q quantile levels.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from model import calibration, scaling
from model.config import ForecasterConfig
from model.forecaster import Network
from model.native_tokens import build_tokens
from model.scaling import ScaleStats
from model.tokens import Series


def limits_in_model_space(series: Series, stats: ScaleStats) -> tuple[Tensor, Tensor]:
    """Least and greatest possible value (B, K) of each series, infinite where there is none."""
    lower = scaling.scale(series.lower[..., None], stats)[..., 0]
    upper = scaling.scale(series.upper[..., None], stats)[..., 0]
    return lower, upper


def conformity(
    network: Network, config: ForecasterConfig, series: Series, target: Tensor
) -> Tensor:
    """Scores of targets under the uncalibrated forecaster, see `model.calibration.scores`.

    Args:
        network: The forecaster, in inference mode.
        config: Its shape.
        series: Histories; their calendar covers the horizon in whole patches.
        target: float32 (B, K, H) in KPI values, NaN where missing.

    Returns:
        (B, K, H, Q), NaN where the target is missing or the KPI only fills the batch up.
    """
    horizon = target.shape[-1]
    with torch.inference_mode():
        built = build_tokens(series, config, math.ceil(horizon / config.patch))
        scaled = network(built)[:, :, :horizon]  # (B, K, H, Q)
        coming = scaling.scale(target, built.stats)
        coming = torch.where(series.present[..., None], coming, torch.nan)
        lower, upper = limits_in_model_space(series, built.stats)
        return calibration.scores(scaled, coming, config.levels, lower, upper)
