"""Calibrating looks only back, is reproducible, mends coverage and never touches weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from model.checkpoint import Checkpoint
from model.forecaster import Forecaster
from model.transformer import TransformerPredictor
from training.calibrate import (
    CalibrateConfig,
    Origins,
    calibrate_from_batches,
    fit_calibration,
)
from training.calibration_check import check_ahead, check_calibration
from training.errors import DataError
from training.scores import GROUPS
from training.source import WindowSource

CONFIG = CalibrateConfig(max_origins=160, horizon=8)


@pytest.fixture(scope="module")
def checkpoint(tiny_config) -> Checkpoint:
    """Fresh weights: the same normal quantiles always, in model space, where they are too wide."""
    torch.manual_seed(0)
    weights = Forecaster(tiny_config).state_dict()
    return Checkpoint("tiny", "0", tiny_config, weights, "test")


@pytest.fixture(scope="module")
def windows(make_window):
    """Cells of independent normal values."""
    cells = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        values = 50 + 10 * rng.normal(size=(1, 1_200))
        cells.append(replace(make_window(seed), values=values.astype(np.float32)))
    return cells


def inside(checkpoint, windows, catalogue, horizon=8):
    """Share of targets between 0.1 and 0.9 in the last 300 steps of each window."""
    predictor = TransformerPredictor(checkpoint, catalogue)
    hits = []
    for origin in range(900, 1_192, horizon):
        pasts = [replace(w, values=w.values[:, :origin]) for w in windows]
        for window, forecast in zip(
            windows, predictor.predict(pasts, horizon, (0.1, 0.9)), strict=True
        ):
            came = window.values[:, origin : origin + horizon]
            hits.append((came >= forecast.values[..., 0]) & (came <= forecast.values[..., 1]))
    return np.mean(hits)


def test_coverage_is_mended_on_later_data(checkpoint, windows, catalogue):
    earlier = [replace(window, values=window.values[:, :900]) for window in windows]
    config = replace(CONFIG, max_origins=600)
    found = replace(checkpoint, calibration=fit_calibration(checkpoint, earlier, catalogue, config))
    assert inside(checkpoint, windows, catalogue) > 0.88
    assert inside(found, windows, catalogue) == pytest.approx(0.8, abs=0.04)


def test_the_same_data_and_seed_give_the_same_calibration(checkpoint, windows, catalogue):
    once = fit_calibration(checkpoint, windows, catalogue, CONFIG)
    assert fit_calibration(checkpoint, windows, catalogue, CONFIG) == once
    other = fit_calibration(checkpoint, windows, catalogue, replace(CONFIG, seed=1))
    assert other.shifts != once.shifts


def test_a_calibration_that_is_there_changes_nothing(checkpoint, windows, catalogue):
    once = fit_calibration(checkpoint, windows, catalogue, CONFIG)
    again = replace(checkpoint, calibration=once)
    assert fit_calibration(again, windows, catalogue, CONFIG) == once


def test_it_says_what_it_was_learnt_from(checkpoint, windows, catalogue):
    seen = []
    found = fit_calibration(
        checkpoint, windows, catalogue, CONFIG, lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (156, 156)
    assert list(found.counts) == ["percent"]
    story = found.provenance
    assert story["data"].startswith("sha256:")
    assert (story["cells"], story["origins"], story["horizon"]) == (6, 156, 8)
    assert story["targets"] == sum(found.counts["percent"])


def test_origins_lie_in_the_last_part_of_every_cell(windows):
    origins = Origins(windows, CONFIG, 32)
    places = [(origin.past.cell, origin.past.steps) for _, c in origins.chunks() for origin in c]
    assert len(places) == len(origins) == 156
    assert {cell for cell, _ in places} == {window.cell for window in windows}
    assert all(840 <= steps < 1_200 for _, steps in places)
    assert len(set(places)) == 156


def test_what_came_follows_what_was_known(windows):
    for _, chunk in Origins(windows, CONFIG, 32).chunks():
        for origin in chunk:
            whole = next(w for w in windows if w.cell == origin.past.cell)
            came = whole.values[:, origin.past.steps : origin.past.steps + 8]
            np.testing.assert_array_equal(origin.future[:, : came.shape[1]], came)
            assert np.isnan(origin.future[:, came.shape[1] :]).all()
            assert 0 <= origin.group < GROUPS


def test_a_forecast_sees_no_more_history_than_it_will_in_use(windows):
    config = replace(CONFIG, history_steps=100)
    for _, chunk in Origins(windows, config, 32).chunks():
        for origin in chunk:
            whole = next(w for w in windows if w.cell == origin.past.cell)
            assert origin.past.steps == 100
            begin = (origin.past.start_ms - whole.start_ms) // whole.step_ms
            np.testing.assert_array_equal(origin.past.values, whole.values[:, begin : begin + 100])


def test_more_cells_than_origins_are_sampled(make_window):
    many = [make_window(seed, steps=100) for seed in range(30)]
    origins = Origins(many, replace(CONFIG, max_origins=10), 32)
    assert len(origins) == origins.cells == 10


def test_the_horizon_is_no_longer_than_the_part_that_calibrates(make_window):
    window = make_window(steps=100)
    assert Origins([window], CalibrateConfig(), 64).horizon == 30
    assert Origins([window], CalibrateConfig(horizon=5), 64).horizon == 5
    assert Origins([make_window(steps=4_000)], CalibrateConfig(), 64).horizon == 64


@pytest.mark.parametrize("steps", [1, 20, 32])
def test_histories_too_short_are_refused(checkpoint, catalogue, make_window, steps):
    with pytest.raises(DataError, match=f"the longest has {steps}"):
        fit_calibration(checkpoint, [make_window(steps=steps)], catalogue, CONFIG)


def test_data_without_values_are_refused(checkpoint, catalogue, make_window):
    window = make_window()
    empty = replace(window, values=np.full_like(window.values, np.nan))
    with pytest.raises(DataError, match="forecasts with a value"):
        fit_calibration(checkpoint, [empty], catalogue, CONFIG)


@pytest.mark.parametrize(
    "change",
    [
        {"calibration_ratio": 0.0},
        {"calibration_ratio": 1.0},
        {"max_origins": 0},
        {"horizon": 0},
        {"history_steps": 5},
    ],
)
def test_settings_that_make_no_sense_are_refused(change):
    with pytest.raises(DataError, match="expected"):
        replace(CONFIG, **change)


def test_batches_of_training_calibrate_too(checkpoint, tiny_config, catalogue, windows):
    source = WindowSource(windows, tiny_config, catalogue, series_per_batch=8)
    found = calibrate_from_batches(
        checkpoint, source, 6, seed=3, provenance={"families": ["held out"]}
    )
    assert list(found.counts) == ["percent"]
    assert found.provenance["families"] == ["held out"]
    assert (found.provenance["batches"], found.provenance["seed"]) == (6, 3)
    assert found == calibrate_from_batches(
        checkpoint, source, 6, seed=3, provenance={"families": ["held out"]}
    )
    assert found.shifts != calibrate_from_batches(checkpoint, source, 6, seed=4).shifts


def test_the_check_judges_on_what_the_shifts_did_not_see(checkpoint, windows, catalogue):
    found = fit_calibration(checkpoint, windows, catalogue, CONFIG)
    check = check_ahead(checkpoint, windows, catalogue, CONFIG, found)
    assert not check.in_sample
    before, after = check.before["RRU.PrbTotDl"], check.after["RRU.PrbTotDl"]
    assert abs(after.coverage - 0.8) < abs(before.coverage - 0.8)
    assert after.wql < before.wql
    off_before = np.abs(check.covered_before - np.array(check.levels)).mean()
    off_after = np.abs(check.covered_after - np.array(check.levels)).mean()
    assert off_after < off_before


def test_a_short_history_is_judged_in_sample_and_says_so(checkpoint, catalogue, make_window):
    windows = [make_window(seed, steps=46) for seed in range(2)]
    config = replace(CONFIG, calibration_ratio=0.3)
    found = fit_calibration(checkpoint, windows, catalogue, config)
    assert check_ahead(checkpoint, windows, catalogue, config, found).in_sample


def test_zeros_count_as_far_as_a_level_needs_them(checkpoint, catalogue, make_window):
    window = make_window(kpis=("DRB.UEThpDl",))
    silent = replace(window, values=np.zeros_like(window.values))
    found = fit_calibration(checkpoint, [silent], catalogue, CONFIG)
    check = check_calibration(checkpoint, found, [silent], catalogue, CONFIG)
    np.testing.assert_allclose(check.covered_before[:5], check.levels[:5])
