"""What holds of every forecast, whatever comes in: found by a fuzzer on a tiny random forecaster.

`test_pretrained_properties.py` asks the same of the checkpoint that ships.

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
from kpi.grid import to_windows
from kpi.observation import ObservationBatch
from kpi.window import KpiWindow
from model import tokens
from model.baseline import SeasonalBaseline
from model.checkpoint import Checkpoint
from model.config import COPY_CANDIDATES, TRAINED_LEVELS
from model.forecaster import Forecaster
from model.predictor import Rung
from model.rollout import Rollout
from model.transformer import TransformerPredictor
from tests.model.strange_windows import (
    SHAPES,
    assert_alike,
    assert_sound,
    calibrations,
    representatives,
    series,
    strange_windows,
)
from training.batch import TrainingBatch
from training.source import WindowSource

LEVELS = (0.05, 0.1, 0.37, 0.5, 0.9, 0.95)
ROUNDING_RATIO = 1e-5
"""A few roundings of float32, which a calibration of four widths makes eight times as large."""


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    """The built-in one, since it has KPIs of every kind."""
    return load_catalogue()


@pytest.fixture(scope="module")
def names(catalogue) -> list[str]:
    return representatives(catalogue)


@pytest.fixture(scope="module")
def checkpoint(tiny_checkpoint) -> Checkpoint:
    """A random one whose head starts from what was seen, as those that ship do."""
    config = replace(tiny_checkpoint.config, copies=COPY_CANDIDATES)
    torch.manual_seed(0)
    forecaster = Forecaster(config)
    with torch.no_grad():
        for parameter in forecaster.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    made: Checkpoint = replace(tiny_checkpoint, config=config, weights=forecaster.state_dict())
    return made


@pytest.fixture(scope="module")
def predictor(checkpoint, catalogue) -> TransformerPredictor:
    return TransformerPredictor(checkpoint, catalogue)


@settings(max_examples=60)
@given(data=st.data())
def test_quantiles_ascend_within_limits_whatever_comes_in(predictor, catalogue, names, data):
    windows = data.draw(strange_windows(names))
    horizon = data.draw(st.integers(1, predictor.max_horizon))
    forecasts = predictor.predict(windows, horizon, LEVELS)
    for window, forecast in zip(windows, forecasts, strict=True):
        assert_sound(forecast, window, catalogue, horizon)


@settings(max_examples=60)
@given(data=st.data())
def test_calibrated_quantiles_ascend_within_limits_whatever_comes_in(
    checkpoint, catalogue, names, data
):
    calibration = data.draw(calibrations(checkpoint.config))
    predictor = TransformerPredictor(replace(checkpoint, calibration=calibration), catalogue)
    windows = data.draw(strange_windows(names))
    horizon = data.draw(st.integers(1, predictor.max_horizon))
    forecasts = predictor.predict(windows, horizon, TRAINED_LEVELS)
    for window, forecast in zip(windows, forecasts, strict=True):
        assert_sound(forecast, window, catalogue, horizon)


@settings(max_examples=15)
@given(data=st.data())
def test_longer_horizons_are_as_sound_whatever_comes_in(checkpoint, catalogue, names, data):
    calibration = data.draw(st.none() | calibrations(checkpoint.config))
    inner = TransformerPredictor(replace(checkpoint, calibration=calibration), catalogue)
    rollout = Rollout(inner, catalogue)
    windows = data.draw(strange_windows(names, most=2))
    horizon = data.draw(st.integers(inner.max_horizon + 1, rollout.max_horizon))
    forecasts = rollout.predict(windows, horizon, LEVELS)
    for window, forecast in zip(windows, forecasts, strict=True):
        assert_sound(forecast, window, catalogue, horizon)


@settings(max_examples=60)
@given(data=st.data())
def test_the_seasonal_baseline_is_as_sound_whatever_comes_in(catalogue, names, data):
    windows = data.draw(strange_windows(names))
    horizon = data.draw(st.integers(1, 100))
    forecasts = SeasonalBaseline(catalogue).predict(windows, horizon, LEVELS)
    for window, forecast in zip(windows, forecasts, strict=True):
        assert_sound(forecast, window, catalogue, horizon)


@settings(max_examples=40)
@given(data=st.data())
def test_strange_neighbours_in_the_batch_change_nothing(
    checkpoint, catalogue, names, make_window, data
):
    calibration = data.draw(st.none() | calibrations(checkpoint.config))
    predictor = TransformerPredictor(replace(checkpoint, calibration=calibration), catalogue)
    strange = data.draw(strange_windows(names))
    kpis = strange[0].kpis or ("Vendor.Unknown",)
    plain = make_window(kpis=kpis, steps=strange[0].steps + 2, step_ms=strange[0].step_ms)
    windows = [strange[0], plain, *strange[1:]]
    horizon = data.draw(st.integers(1, predictor.max_horizon))
    together = predictor.predict(windows, horizon, LEVELS)
    for window, forecast in zip(windows, together, strict=True):
        (alone,) = predictor.predict([window], horizon, LEVELS)
        assert_alike(alone, forecast, ROUNDING_RATIO)
        assert forecast.context == alone.context
        assert forecast.rung == alone.rung


@settings(max_examples=30)
@given(data=st.data())
def test_the_order_of_kpis_is_that_of_the_answers_whatever_comes_in(predictor, names, data):
    (window, *_) = data.draw(strange_windows(names, most=1))
    order = data.draw(st.permutations(range(len(window.kpis))))
    turned = replace(window, kpis=tuple(window.kpis[i] for i in order), values=window.values[order])
    (one,), (other,) = (predictor.predict([w], 20, LEVELS) for w in (window, turned))
    assert_alike(replace(one, values=one.values[order]), other, ROUNDING_RATIO)


@settings(max_examples=30)
@given(data=st.data(), power=st.integers(-60, 60))
def test_a_power_of_two_scales_the_forecast_exactly_also_above_a_limit_at_zero(
    checkpoint, catalogue, make_window, data, power
):
    calibration = data.draw(st.none() | calibrations(checkpoint.config))
    predictor = TransformerPredictor(replace(checkpoint, calibration=calibration), catalogue)
    window = make_window(
        data.draw(st.integers(0, 9)), kpis=("Vendor.Unknown", "DRB.UEThpDl"), steps=150
    )
    window.values[1, 40:90] = 0
    scaled = replace(window, values=window.values * np.float32(2.0**power))
    (one,), (other,) = (predictor.predict([w], 24, LEVELS) for w in (window, scaled))
    np.testing.assert_array_equal(other.values, one.values * np.float32(2.0**power))


@settings(max_examples=20)
@given(data=st.data())
def test_zeros_are_answered_with_zeros_beside_anything(checkpoint, catalogue, data):
    calibration = data.draw(st.none() | calibrations(checkpoint.config))
    predictor = TransformerPredictor(replace(checkpoint, calibration=calibration), catalogue)
    names = ("RRU.PrbTotDl", "DRB.UEThpDl", "Vendor.Unknown", "Vendor.Other")
    values = np.zeros((4, 100), np.float32)
    values[1, ::3] = np.nan
    values[3] = data.draw(series(100))
    window = KpiWindow("cell", names, 1_767_571_200_000, 900_000, values)
    (forecast,) = predictor.predict([window], predictor.max_horizon, LEVELS)
    assert not forecast.values[:3].any()


@pytest.mark.parametrize("longer", [False, True], ids=["one pass", "rollout"])
def test_what_was_never_seen_gets_its_whole_range_and_says_so(predictor, catalogue, names, longer):
    answerer = Rollout(predictor, catalogue) if longer else predictor
    limited = [
        kpi.name
        for kpi in map(catalogue.resolve, names)
        if kpi.lower is not None and kpi.upper is not None
    ]
    silence = np.full((len(limited), 64), np.nan, np.float32)
    window = KpiWindow("cell", tuple(limited), 0, 900_000, silence)
    (forecast,) = answerer.predict([window], answerer.max_horizon, LEVELS)
    for name, values in zip(limited, forecast.values, strict=True):
        kpi = catalogue.resolve(name)
        assert kpi.lower is not None
        assert kpi.upper is not None
        share = (values - kpi.lower) / (kpi.upper - kpi.lower)
        np.testing.assert_allclose(share, np.broadcast_to(LEVELS, share.shape), rtol=1e-6)
    assert forecast.rung is Rung.BASELINE
    assert forecast.context.missing_ratio == 1
    assert forecast.context.newest_ms is None


@settings(max_examples=20)
@given(data=st.data())
def test_samples_after_the_origin_are_not_looked_at(predictor, names, make_window, data):
    whole = make_window(kpis=tuple(names[:2]), steps=300)
    origin = data.draw(st.integers(0, 299))
    other = whole.values.copy()
    for row in other:
        row[origin:] = data.draw(series(300 - origin))
    one, two = (
        predictor.predict([replace(whole, values=values[:, :origin])], 48, LEVELS)[0].values
        for values in (whole.values, other)
    )
    np.testing.assert_array_equal(one, two)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), data=st.data())
def test_a_training_batch_shows_nothing_of_its_target(
    checkpoint, catalogue, make_window, seed, data
):
    config = checkpoint.config
    recording = make_window(kpis=("RRU.PrbTotDl",), steps=300)

    def batch(values: np.ndarray) -> TrainingBatch:
        windows = [replace(recording, values=values, country="ES-CT")]
        source = WindowSource(windows, config, catalogue, series_per_batch=1)
        return source.batch(np.random.default_rng(seed))

    drawn = batch(recording.values)
    history = drawn.series.values[0, 0].numpy()
    newest = history[~np.isnan(history)][-1]
    origin = int(np.flatnonzero(recording.values[0] == newest)[0]) + 1
    changed = recording.values.copy()
    changed[0, origin:] = np.nan_to_num(data.draw(series(300 - origin)))
    other = batch(changed)
    assert not torch.equal(drawn.target, other.target)
    future_patches = drawn.target.shape[-1] // config.patch
    seen, also = (
        tokens.build_tokens(each.series, config, future_patches) for each in (drawn, other)
    )
    for name in ("inputs", "visible"):
        assert torch.equal(getattr(seen, name), getattr(also, name)), name
    assert all(map(torch.equal, seen.stats, also.stats))
    assert seen.copies is not None
    assert also.copies is not None
    assert all(map(torch.equal, seen.copies, also.copies))


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e39, -1e39])
def test_what_no_float_holds_is_missing_before_it_reaches_a_model(catalogue, value):
    readings = [5.0, value, 7.0]
    ends_ms = [900_000, 1_800_000, 2_700_000]
    batch = ObservationBatch.from_lists(
        ["cell"] * 3, ["Vendor.Unknown"] * 3, ends_ms, 900_000, readings, arrival_ms=0
    )
    (window,) = to_windows([batch], catalogue=catalogue)
    np.testing.assert_array_equal(window.values, [[5, np.nan, 7]])


def test_the_fuzzer_draws_what_it_says(catalogue, names):
    kinds = {catalogue.resolve(name).kind for name in names}
    assert kinds == {kpi.kind for kpi in catalogue.kpis.values()}
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore"):
        drawn = np.concatenate([shape(rng, 500) for shape in SHAPES.values()]).astype(np.float32)
    assert (np.abs(drawn) == np.finfo(np.float32).max).any()
    subnormal = (drawn != 0) & (np.abs(drawn) < np.finfo(np.float32).tiny)
    assert subnormal.any()
