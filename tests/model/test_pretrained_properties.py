"""What holds of every forecast of the checkpoint that ships, whatever comes in.

Bounds are those of any checkpoint that is fit to ship; none of them knows this one's numbers.

Axis legend: K KPIs, T samples.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kpi.catalogue import Catalogue, load_catalogue
from kpi.window import KpiWindow, PlannedEvent
from model.checkpoint import Checkpoint, load_checkpoint
from model.config import TRAINED_LEVELS
from model.predictor import Forecast, Rung
from model.pretrained import default_checkpoint_path
from model.transformer import TransformerPredictor
from tests.model.strange_windows import (
    assert_alike,
    assert_sound,
    calibrations,
    representatives,
    series,
    strange_windows,
)

HOUR_MS = 3_600_000
MONDAY_MS = 1_767_571_200_000  # 2026-01-05T00:00Z
HAIR_RATIO = 0.02
"""How far quantiles may lie from a constant that has been seen for a while, as a share of it."""

MEDIAN_RATIO = 0.01
"""How far the median may, however short the constant has been seen."""

A_WHILE_STEPS = 96

ROUNDING_RATIO = 1e-5


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Two threads may add up in another order from call to call."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    return load_checkpoint(default_checkpoint_path())


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


@pytest.fixture(scope="module")
def names(catalogue) -> list[str]:
    return representatives(catalogue)


@pytest.fixture(scope="module")
def shipped(checkpoint, catalogue) -> TransformerPredictor:
    return TransformerPredictor(checkpoint, catalogue)


def window_of(values: np.ndarray, kpis: tuple[str, ...] = ("DRB.UEThpDl",)) -> KpiWindow:
    return KpiWindow("cell", kpis, MONDAY_MS, HOUR_MS, values.astype(np.float32))


def only(predictor: TransformerPredictor, window: KpiWindow, horizon: int = 48) -> Forecast:
    (forecast,) = predictor.predict([window], horizon, TRAINED_LEVELS)
    return forecast


def a_cell(seed: int = 0, kpis: int = 1) -> np.ndarray:
    """(K, T) two weeks of an hourly rhythm far above zero."""
    rng = np.random.default_rng(seed)
    hour = np.arange(336)
    return 100 + 30 * np.sin(2 * np.pi * hour / 24) + 4 * rng.normal(size=(kpis, 336))


@settings(max_examples=25)
@given(data=st.data())
def test_quantiles_ascend_within_limits_whatever_comes_in(checkpoint, catalogue, names, data):
    calibration = data.draw(st.just(checkpoint.calibration) | calibrations(checkpoint.config))
    predictor = TransformerPredictor(
        replace(checkpoint, calibration=calibration),
        catalogue,
        calibrated=data.draw(st.booleans()),
    )
    windows = data.draw(strange_windows(names, most=3))
    horizon = data.draw(st.sampled_from((1, 24, predictor.max_horizon)))
    forecasts = predictor.predict(windows, horizon, TRAINED_LEVELS)
    for window, forecast in zip(windows, forecasts, strict=True):
        assert_sound(forecast, window, catalogue, horizon)


@settings(max_examples=15)
@given(data=st.data())
def test_strange_neighbours_in_the_batch_change_nothing(shipped, names, data):
    strange = data.draw(strange_windows(names, most=3))
    kpis = tuple(strange[0].kpis) or ("Vendor.Unknown",)
    plain = replace(window_of(a_cell(kpis=len(kpis)), kpis), step_ms=strange[0].step_ms)
    windows = [strange[0], plain, *strange[1:]]
    together = shipped.predict(windows, 24, TRAINED_LEVELS)
    for window, forecast in zip(windows, together, strict=True):
        assert_alike(only(shipped, window, 24), forecast, ROUNDING_RATIO)


@settings(max_examples=10)
@given(power=st.integers(-60, 60), seed=st.integers(0, 9))
def test_a_power_of_two_scales_the_forecast_exactly(shipped, power, seed):
    window = window_of(a_cell(seed))
    factor = np.float32(2.0**power)
    scaled = replace(window, values=window.values * factor)
    one, other = only(shipped, window), only(shipped, scaled)
    np.testing.assert_array_equal(other.values, one.values * factor)


@settings(max_examples=10)
@given(order=st.permutations(range(3)))
def test_the_order_of_kpis_is_that_of_the_answers(shipped, order):
    kpis = ("DRB.UEThpDl", "Vendor.Unknown", "RRU.PrbTotDl")
    window = window_of(a_cell(kpis=3) * [[1], [1e6], [0.5]], kpis)
    turned = replace(window, kpis=tuple(kpis[i] for i in order), values=window.values[order])
    one, other = only(shipped, window), only(shipped, turned)
    assert_alike(replace(one, values=one.values[order]), other, ROUNDING_RATIO)


@settings(max_examples=20)
@given(
    exponent=st.floats(-37, 37),
    sign=st.sampled_from((-1, 1)),
    steps=st.integers(2, 500),
    step_ms=st.sampled_from((1_000, 60_000, 900_000, HOUR_MS)),
)
def test_a_constant_of_any_size_goes_on_with_a_hair_of_width(
    shipped, exponent, sign, steps, step_ms
):
    level = sign * 10.0**exponent
    window = window_of(np.full((1, steps), level), ("Vendor.Unknown",))
    forecast = only(shipped, replace(window, step_ms=step_ms))
    away = np.abs(forecast.values[0] / level - 1)
    assert away[:, TRAINED_LEVELS.index(0.5)].max() <= MEDIAN_RATIO
    assert steps < A_WHILE_STEPS or away.max() <= HAIR_RATIO
    assert (forecast.values[..., -1] > forecast.values[..., 0]).all()


@settings(max_examples=10)
@given(data=st.data())
def test_zeros_are_answered_with_zeros_beside_anything(shipped, data):
    values = np.zeros((4, 100), np.float32)
    values[1, ::3] = np.nan
    values[3] = data.draw(series(100))
    kpis = ("RRU.PrbTotDl", "DRB.UEThpDl", "Vendor.Unknown", "Vendor.Other")
    assert not only(shipped, window_of(values, kpis), shipped.max_horizon).values[:3].any()


def test_what_was_never_seen_gets_its_whole_range_and_says_so(shipped, catalogue, names):
    silence = window_of(np.full((len(names), 64), np.nan), tuple(names))
    forecast = only(shipped, silence)
    for name, values in zip(names, forecast.values, strict=True):
        kpi = catalogue.resolve(name)
        if kpi.lower is None or kpi.upper is None:
            assert np.isnan(values).all()
            continue
        share = (values - kpi.lower) / (kpi.upper - kpi.lower)
        np.testing.assert_allclose(share, np.broadcast_to(TRAINED_LEVELS, share.shape), rtol=1e-6)
    assert forecast.rung is Rung.BASELINE
    assert forecast.context.missing_ratio == 1
    assert forecast.context.newest_ms is None


@settings(max_examples=10)
@given(data=st.data(), origin=st.integers(2, 335))
def test_samples_after_the_origin_are_not_looked_at(shipped, data, origin):
    whole = replace(
        window_of(a_cell()),
        country="ES-CT",
        events=(PlannedEvent(MONDAY_MS, MONDAY_MS + 5 * HOUR_MS),),
    )
    other = whole.values.copy()
    other[0, origin:] = data.draw(series(336 - origin))
    one, two = (
        only(shipped, replace(whole, values=values[:, :origin])).values
        for values in (whole.values, other)
    )
    np.testing.assert_array_equal(one, two)
