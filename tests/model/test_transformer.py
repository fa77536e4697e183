"""The predictor's promises: batch independence, equivariances, limits, honest answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kpi.window import KpiWindow, PlannedEvent
from model.config import COPY_CANDIDATES
from model.errors import HorizonError, LevelError, ModelError
from model.forecaster import Forecaster
from model.predictor import Rung
from model.transformer import TransformerPredictor

LEVELS = (0.1, 0.5, 0.9)
HOUR_MS = 3_600_000


@pytest.fixture(
    scope="module", params=[("rope", COPY_CANDIDATES), ("alibi", ()), ("none", COPY_CANDIDATES)]
)
def variant(request, tiny_config, tiny_checkpoint, catalogue):
    """A predictor whose positions and head differ from the usual ones."""
    position, copies = request.param
    config = replace(tiny_config, position=position, copies=copies)
    torch.manual_seed(0)
    forecaster = Forecaster(config)
    with torch.no_grad():
        for parameter in forecaster.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    checkpoint = replace(tiny_checkpoint, config=config, weights=forecaster.state_dict())
    return TransformerPredictor(checkpoint, catalogue)


def test_a_forecast_does_not_depend_on_its_batch(predictor, make_window):
    windows = [
        make_window(1, steps=37),
        make_window(2, steps=128),
        make_window(3, steps=500),
        make_window(4, steps=120, kpis=("Percent", "Volume")),
        make_window(5, steps=128, step_ms=900_000),
    ]
    together = predictor.predict(windows, 24, LEVELS)
    for window, forecast in zip(windows, together, strict=True):
        (alone,) = predictor.predict([window], 24, LEVELS)
        size = np.abs(alone.values).max()
        np.testing.assert_allclose(forecast.values / size, alone.values / size, rtol=0, atol=1e-6)
        assert forecast.cell == window.cell


def test_more_windows_than_a_batch_holds_are_all_answered_in_order(predictor, make_window):
    windows = [make_window(seed, steps=48) for seed in range(70)]
    forecasts = predictor.predict(windows, 4, LEVELS)
    assert [forecast.cell for forecast in forecasts] == [window.cell for window in windows]


@pytest.mark.parametrize(("kpis", "most"), [(1, 32), (16, 32), (100, 5), (600, 1)])
def test_cells_of_many_kpis_go_through_in_smaller_batches(predictor, monkeypatch, kpis, most):
    sizes = []

    def note(windows, *_):
        sizes.append(len(windows))
        return [None] * len(windows)

    monkeypatch.setattr(predictor, "_predict_alike", note)
    names = tuple(f"Kpi{number}" for number in range(kpis))
    window = KpiWindow("cell", names, 0, 900_000, np.ones((kpis, 4), np.float32))
    predictor.predict([window] * 40, 4, LEVELS)
    assert sum(sizes) == 40
    assert max(sizes) == most


def test_missing_samples_in_front_are_the_same_as_no_samples(predictor, make_window):
    window = make_window(steps=64)
    padded = replace(
        window,
        start_ms=window.start_ms - 64 * window.step_ms,
        values=np.pad(window.values, ((0, 0), (64, 0)), constant_values=np.nan),
    )
    (short,), (long,) = (predictor.predict([w], 16, LEVELS) for w in (window, padded))
    np.testing.assert_allclose(short.values, long.values, rtol=1e-5, atol=1e-4)


@settings(max_examples=20, deadline=None)
@given(factor=st.floats(0.1, 1e9))
def test_scaling_the_samples_scales_the_forecast(predictor, make_window, factor):
    window = make_window()
    larger = replace(window, values=(window.values * factor).astype(np.float32))
    (one,), (other,) = (predictor.predict([w], 24, LEVELS) for w in (window, larger))
    size = np.abs(one.values).max()
    np.testing.assert_allclose(other.values / factor / size, one.values / size, rtol=0, atol=1e-4)


def test_the_order_of_kpis_does_not_matter(predictor, make_window):
    window = make_window(kpis=("Percent", "Volume", "Free"))
    order = [2, 0, 1]
    turned = replace(window, kpis=tuple(window.kpis[i] for i in order), values=window.values[order])
    (one,), (other,) = (predictor.predict([w], 24, LEVELS) for w in (window, turned))
    np.testing.assert_allclose(other.values, one.values[order], rtol=1e-5, atol=1e-4)


def test_a_variant_keeps_the_promises_of_batch_padding_and_order(variant, make_window):
    window = make_window(kpis=("Percent", "Volume", "Free"), steps=100)
    order = [2, 0, 1]
    turned = replace(window, kpis=tuple(window.kpis[i] for i in order), values=window.values[order])
    longer = make_window(9, kpis=("Free",) * 3, steps=500)
    (alone,) = variant.predict([window], 24, LEVELS)
    first, second, _ = variant.predict([window, turned, longer], 24, LEVELS)
    assert np.isfinite(alone.values).all()
    assert (np.diff(alone.values, axis=-1) >= 0).all()
    np.testing.assert_allclose(first.values, alone.values, rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(second.values, alone.values[order], rtol=1e-5, atol=1e-3)


def test_zeros_are_answered_with_exact_zeros(variant, make_window):
    window = make_window(kpis=("Percent", "Volume", "Free"))
    window.values[:2] = 0
    window.values[0, ::5] = np.nan
    (forecast,) = variant.predict([window], 24, LEVELS)
    assert (forecast.values[:2] == 0).all()
    assert (np.ptp(forecast.values[2], axis=-1) > 0).all()


@pytest.mark.parametrize("step_ms", [1_000, 60_000, 900_000, HOUR_MS, 24 * HOUR_MS, 168 * HOUR_MS])
def test_a_variant_answers_any_step_and_length(variant, make_window, step_ms):
    windows = [replace(make_window(steps=steps), step_ms=step_ms) for steps in (2, 17, 200)]
    for forecast in variant.predict(windows, 48, LEVELS):
        assert np.isfinite(forecast.values).all()


def test_a_coming_event_is_taken_into_account(predictor, make_window):
    window = make_window()
    event = PlannedEvent(window.end_ms + 2 * HOUR_MS, window.end_ms + 5 * HOUR_MS)
    (without,), (told,) = (
        predictor.predict([replace(window, events=events)], 16, LEVELS) for events in ((), (event,))
    )
    assert not np.allclose(without.values, told.values, rtol=1e-3)


def test_an_event_outside_of_context_and_horizon_changes_nothing(predictor, make_window):
    window = make_window()  # the tiny context holds 128 samples
    events = (
        PlannedEvent(window.start_ms, window.end_ms - 128 * HOUR_MS),
        PlannedEvent(window.end_ms + 16 * HOUR_MS, window.end_ms + 90 * HOUR_MS),
    )
    (without,), (told,) = (
        predictor.predict([replace(window, events=known)], 16, LEVELS) for known in ((), events)
    )
    np.testing.assert_array_equal(without.values, told.values)


def test_holidays_of_the_country_are_taken_into_account(predictor, make_window):
    window = make_window(steps=24 * 28)  # from 2026-01-05: the 6th is Epiphany in Spain
    window = replace(window, start_ms=window.start_ms - 26 * 24 * HOUR_MS)
    answers = [
        predictor.predict([replace(window, country=country)], 16, LEVELS)[0].values
        for country in (None, "ES", "IS")  # Iceland keeps no Epiphany
    ]
    assert not np.allclose(answers[0], answers[1], rtol=1e-3)
    assert not np.allclose(answers[1], answers[2], rtol=1e-3)


def test_windows_of_several_countries_share_a_batch(predictor, make_window):
    window = make_window()
    windows = [replace(window, country=country) for country in ("ES", None, "JP")]
    together = predictor.predict(windows, 16, LEVELS)
    for one, forecast in zip(windows, together, strict=True):
        (alone,) = predictor.predict([one], 16, LEVELS)
        np.testing.assert_allclose(forecast.values, alone.values, rtol=1e-5, atol=1e-3)


def test_an_unknown_country_is_refused(predictor, make_window):
    with pytest.raises(ModelError, match="expected a country"):
        predictor.predict([replace(make_window(), country="XX")], 16, LEVELS)


def test_another_kpi_of_the_cell_is_taken_into_account(predictor, make_window):
    window = make_window(kpis=("Volume", "Free"))
    changed = replace(window, values=window.values * np.array([[1], [-1]], dtype=np.float32))
    (one,), (other,) = (predictor.predict([w], 24, LEVELS) for w in (window, changed))
    assert not np.allclose(one.values[0], other.values[0], rtol=1e-3)


def test_local_time_is_taken_into_account(predictor, make_window):
    window = make_window()
    (utc,), (tokyo,) = (
        predictor.predict([replace(window, time_zone=zone)], 24, LEVELS)
        for zone in ("UTC", "Asia/Tokyo")
    )
    assert not np.allclose(utc.values, tokyo.values, rtol=1e-3)


def test_a_shorter_horizon_is_the_begin_of_a_longer_one_of_as_many_patches(predictor, make_window):
    window = make_window()
    (short,), (long,) = (predictor.predict([window], h, LEVELS) for h in (17, 32))
    np.testing.assert_array_equal(short.values, long.values[:, :17])


def test_quantiles_ascend_and_stay_within_limits(predictor, make_window):
    window = make_window(kpis=("Percent", "Volume"))
    window = replace(window, values=(window.values - 60) * 3)
    (forecast,) = predictor.predict([window], 48, (0.05, 0.1, 0.33, 0.5, 0.9, 0.95))
    assert (np.diff(forecast.values, axis=-1) >= 0).all()
    assert forecast.values.min() >= 0
    assert forecast.values[0].max() <= 100
    assert forecast.values[1].max() > 100


def test_levels_between_trained_ones_are_interpolated(predictor, make_window):
    (forecast,) = predictor.predict([make_window()], 8, (0.1, 0.15, 0.2))
    low, middle, high = np.moveaxis(forecast.values, -1, 0)
    assert (low < middle).all()
    assert (middle < high).all()


def test_provenance_tells_span_share_missing_and_age(predictor, make_window):
    window = make_window(steps=200)  # the tiny context holds 128
    values = window.values.copy()
    values[:, -10:] = np.nan
    (forecast,) = predictor.predict([replace(window, values=values)], 5, LEVELS)
    assert forecast.start_ms == window.end_ms
    assert forecast.context.end_ms == window.end_ms
    assert forecast.context.start_ms == window.end_ms - 128 * window.step_ms
    assert forecast.context.missing_ratio == pytest.approx(10 / 128)
    assert forecast.context.newest_ms == window.end_ms - 10 * window.step_ms
    assert forecast.rung is Rung.FULL
    assert forecast.model.digest == "sha256:0"
    assert forecast.values.shape == (1, 5, 3)


def test_a_kpi_never_seen_gets_its_whole_range_or_nothing(predictor, make_window):
    window = make_window(kpis=("Percent", "Volume", "Free"))
    silent = replace(window, values=np.full_like(window.values, np.nan))
    (forecast,) = predictor.predict([silent], 3, LEVELS)
    np.testing.assert_allclose(forecast.values[0], [[10, 50, 90]] * 3)
    assert np.isnan(forecast.values[1:]).all()
    assert forecast.rung is Rung.BASELINE
    assert forecast.context.missing_ratio == 1.0
    assert forecast.context.newest_ms is None


def test_a_silent_kpi_does_not_move_the_others(predictor, make_window):
    window = make_window(kpis=("Free", "Volume"))
    values = window.values.copy()
    values[1] = np.nan
    (beside,) = predictor.predict([replace(window, values=values)], 24, LEVELS)
    (alone,) = predictor.predict([replace(window, kpis=("Free",), values=values[:1])], 24, LEVELS)
    np.testing.assert_allclose(beside.values[0], alone.values[0], rtol=1e-5, atol=1e-4)


def test_a_silent_kpi_does_not_silence_the_others(predictor, make_window):
    window = make_window(kpis=("Free", "Volume"))
    values = window.values.copy()
    values[1] = np.nan
    (forecast,) = predictor.predict([replace(window, values=values)], 3, LEVELS)
    assert np.isfinite(forecast.values[0]).all()
    assert np.isnan(forecast.values[1]).all()
    assert forecast.rung is Rung.FULL


def test_a_single_sample_is_answered_wide_and_says_so(predictor, make_window):
    (forecast,) = predictor.predict([make_window(steps=1)], 12, LEVELS)
    (level,) = make_window(steps=1).values[0]
    assert forecast.rung is Rung.BASELINE
    assert (forecast.values[..., 0] < 0.7 * level).all()
    assert (forecast.values[..., 2] > 1.3 * level).all()


def test_a_single_sample_is_answered_at_all_levels_of_the_checkpoint(
    tiny_config, tiny_checkpoint, catalogue, make_window
):
    config = replace(tiny_config, levels=(0.01, 0.5, 0.99))
    wider = replace(tiny_checkpoint, config=config, weights=Forecaster(config).state_dict())
    (forecast,) = TransformerPredictor(wider, catalogue).predict(
        [make_window(steps=1)], 2, (0.01, 0.99)
    )
    assert (forecast.values[..., 1] > forecast.values[..., 0]).all()


def test_an_outage_longer_than_the_context_is_bridged_from_before_it(predictor, make_window):
    window = make_window(steps=24 * 12)  # the tiny context holds 128
    values = window.values.copy()
    values[:, -130:] = np.nan
    (forecast,) = predictor.predict([replace(window, values=values)], 24, LEVELS)
    assert forecast.rung is Rung.BASELINE
    assert np.isfinite(forecast.values).all()
    assert forecast.model.digest == "sha256:0"
    assert forecast.context.newest_ms == window.end_ms - 130 * window.step_ms
    assert forecast.context.start_ms == window.start_ms


def test_a_kpi_of_one_sample_is_wide_beside_one_that_is_known(predictor, make_window):
    window = make_window(kpis=("Free", "Volume"))
    values = window.values.copy()
    values[1, :-1] = np.nan
    (forecast,) = predictor.predict([replace(window, values=values)], 3, LEVELS)
    assert forecast.rung is Rung.FULL
    assert (np.ptp(forecast.values[1], axis=-1) > 0.5 * values[1, -1]).all()


def test_a_window_without_kpis_gets_a_forecast_without_kpis(predictor, make_window):
    (forecast,) = predictor.predict([make_window(kpis=())], 3, LEVELS)
    assert forecast.values.shape == (0, 3, 3)


def test_sixteen_kpis_are_answered(predictor, make_window):
    window = make_window(kpis=tuple(f"Kpi{number}" for number in range(16)))
    (forecast,) = predictor.predict([window], 3, LEVELS)
    assert forecast.values.shape == (16, 3, 3)
    assert np.isfinite(forecast.values).all()


@pytest.mark.parametrize("step_ms", [1, 100, 7 * 24 * 3_600_000, 365 * 24 * 3_600_000])
def test_steps_from_milliseconds_to_years_are_answered(predictor, make_window, step_ms):
    window = replace(make_window(), step_ms=step_ms)
    (forecast,) = predictor.predict([window], 3, LEVELS)
    assert np.isfinite(forecast.values).all()
    assert forecast.start_ms == window.start_ms + 200 * step_ms


def test_values_at_the_edge_of_what_a_float_holds_are_answered_finite(predictor, make_window):
    window = make_window()
    sign = np.where(np.arange(window.steps) % 2, 1, -1)
    huge = replace(window, values=(3e38 * sign)[None].astype(np.float32))
    (forecast,) = predictor.predict([huge], 48, LEVELS)
    assert np.isfinite(forecast.values).all()


@pytest.mark.parametrize("level", [0.0, 7.5, -3.0, 1e6])
def test_a_constant_series_is_answered_with_finite_quantiles(predictor, make_window, level):
    window = make_window()
    constant = replace(window, values=np.full_like(window.values, level))
    (forecast,) = predictor.predict([constant], 48, LEVELS)
    assert np.isfinite(forecast.values).all()


def test_the_median_of_a_constant_is_the_constant_before_training(
    tiny_config, tiny_checkpoint, catalogue, make_window
):
    untrained = replace(tiny_checkpoint, weights=Forecaster(tiny_config).state_dict())
    window = make_window()
    constant = replace(window, values=np.full_like(window.values, 7.5))
    (forecast,) = TransformerPredictor(untrained, catalogue).predict([constant], 48, LEVELS)
    np.testing.assert_allclose(forecast.values[..., 1], 7.5, rtol=1e-6)
    assert (np.ptp(forecast.values, axis=-1) < 0.05 * 7.5).all()


def test_samples_before_all_that_the_model_may_see_change_nothing(predictor, make_window):
    window = make_window(steps=128 + 4 * 7 * 24 + 50)
    other = window.values.copy()
    other[:, :50] = 1e6
    (one,), (two,) = (
        predictor.predict([w], 8, LEVELS) for w in (window, replace(window, values=other))
    )
    np.testing.assert_array_equal(one.values, two.values)


def test_an_empty_window_is_answered(predictor, make_window):
    window = make_window(steps=0, kpis=("Percent",))
    (forecast,) = predictor.predict([window], 2, LEVELS)
    np.testing.assert_allclose(forecast.values[0], [[10, 50, 90]] * 2)


@pytest.mark.parametrize("horizon", [0, -1, 49])
def test_a_horizon_out_of_range_is_refused_with_the_range(predictor, make_window, horizon):
    with pytest.raises(HorizonError, match="1 to 48"):
        predictor.predict([make_window()], horizon, LEVELS)


@pytest.mark.parametrize("levels", [(), (0.01,), (0.5, 0.99), (0.9, 0.1), (0.5, 0.5)])
def test_levels_out_of_range_or_order_are_refused(predictor, make_window, levels):
    with pytest.raises(LevelError):
        predictor.predict([make_window()], 4, levels)
