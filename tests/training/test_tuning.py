"""Tuned weights are taken where forecasts got better beyond doubt, and only there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from model.checkpoint import Checkpoint
from model.forecaster import Forecaster
from training import tuning
from training.errors import DataError, DivergedError, ResumeError
from training.fit import fit
from training.held_back import split_in_time
from training.tuning import TuneConfig, Tuned, fit_config, least_gain, mixture, tune

CONFIG = TuneConfig(
    horizon=12, history_steps=96, steps=40, learning_rate=1e-2, series=8, synthetic_ratio=0.0
)
STILL = replace(CONFIG, steps=2, learning_rate=1e-30)


@pytest.fixture(scope="module")
def base(tiny_config, catalogue) -> Checkpoint:
    torch.manual_seed(0)
    weights = {name: w.clone() for name, w in Forecaster(tiny_config).state_dict().items()}
    return Checkpoint("base", "1.0", tiny_config, weights, catalogue.version, digest="sha256:0")


@pytest.fixture(scope="module")
def windows(make_window):
    return [make_window(seed, steps=400) for seed in range(2)]


def same(one, two) -> bool:
    return all(torch.equal(one[name], two[name]) for name in one)


def stop_at(step: int):
    def watch(progress):
        if progress.step == step:
            raise KeyboardInterrupt

    return watch


@pytest.fixture(scope="module")
def tuned(base, windows, catalogue) -> Tuned:
    return tune(base, windows, catalogue, CONFIG)


def test_weights_that_forecast_better_are_taken(tuned):
    assert tuned.moved
    assert tuned.share == 1
    assert same(tuned.weights, tuned.result.last)
    assert tuned.scores.wql < 0.8 * tuned.zero_shot.wql
    assert tuned.comparison.gain == pytest.approx(1 - tuned.scores.wql / tuned.zero_shot.wql)


def test_weights_that_gain_nothing_are_not_taken(base, windows, catalogue):
    tuned = tune(base, windows, catalogue, STILL)
    assert not tuned.moved
    assert same(tuned.weights, base.weights)


def test_weights_that_forecast_worse_are_not_taken(base, windows, catalogue, tuned):
    good = replace(base, weights=tuned.weights)
    wild = replace(CONFIG, steps=3, learning_rate=3.0)
    worse = tune(good, windows, catalogue, wild)
    assert worse.comparison.gain < 0.005
    assert worse.scores.wql > worse.zero_shot.wql
    assert same(worse.weights, good.weights)


def test_a_mixture_is_taken_where_the_tuned_weights_went_too_far(
    base, windows, catalogue, tuned, monkeypatch
):
    def too_far(*_, **__):
        return replace(tuned.result, last=mixture(base.weights, tuned.result.last, 2.0))

    monkeypatch.setattr(tuning, "SHARES", (50.0, 0.5))
    monkeypatch.setattr(tuning, "fit", too_far)
    mixed = tune(base, windows, catalogue, CONFIG)
    assert mixed.share == 0.5
    assert all(torch.allclose(mixed.weights[name], w) for name, w in tuned.weights.items())


def test_a_mixture_lies_between_its_ends():
    first, last = {"w": torch.zeros(3)}, {"w": torch.ones(3)}
    assert torch.equal(mixture(first, last, 0.25)["w"], torch.full((3,), 0.25))
    assert torch.equal(mixture(first, last, 1.0)["w"], last["w"])


def test_the_held_back_part_does_not_teach(base, windows, catalogue, tuned):
    cut = split_in_time(windows, least_steps=48).tune[0].steps
    changed = []
    for window in windows:
        values = window.values.copy()
        values[:, cut:] = 7.0
        changed.append(replace(window, values=values))
    other = tune(base, changed, catalogue, CONFIG)
    assert same(other.result.last, tuned.result.last)
    assert other.zero_shot.wql != tuned.zero_shot.wql


def test_the_same_seed_gives_the_same_weights(base, windows, catalogue):
    short = replace(CONFIG, steps=4, synthetic_ratio=0.5)
    one, two = (tune(base, windows, catalogue, short) for _ in range(2))
    other = tune(base, windows, catalogue, replace(short, seed=1))
    assert same(one.result.last, two.result.last)
    assert not same(one.result.last, other.result.last)


def test_a_stopped_run_ends_with_the_weights_of_one_that_was_not(
    base, windows, catalogue, tuned, tmp_path
):
    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        tune(base, windows, catalogue, CONFIG, state_path=path, on_progress=stop_at(5))
    steps = []
    resumed = tune(
        base,
        windows,
        catalogue,
        CONFIG,
        state_path=path,
        on_progress=lambda progress: steps.append(progress.step),
    )
    assert steps[0] == 6
    assert same(resumed.weights, tuned.weights)


@pytest.mark.parametrize("change", ["base", "config", "data"])
def test_a_stopped_run_is_not_gone_on_with_by_another(
    change, base, windows, catalogue, make_window, tmp_path
):
    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        tune(base, windows, catalogue, CONFIG, state_path=path, on_progress=stop_at(1))
    if change == "base":
        base = replace(base, weights={name: w + 1e-3 for name, w in base.weights.items()})
    if change == "data":
        windows = [*windows, make_window(9)]
    config = replace(CONFIG, series=4) if change == "config" else CONFIG
    with pytest.raises(ResumeError, match="other settings or data"):
        tune(base, windows, catalogue, config, state_path=path)


def test_a_run_within_minutes_goes_on_with_the_steps_it_began_with(
    base, windows, catalogue, tmp_path
):
    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        tune(
            base,
            windows,
            catalogue,
            replace(CONFIG, steps=None),
            minutes=1e-9,
            state_path=path,
            on_progress=stop_at(1),
        )
    tuned = tune(
        base, windows, catalogue, replace(CONFIG, steps=None), minutes=100.0, state_path=path
    )
    assert tuned.fit.steps == 1


def test_minutes_do_not_make_a_run_longer_than_its_schedule(base, windows, catalogue):
    config = replace(CONFIG, steps=3)
    assert tune(base, windows, catalogue, config, minutes=100.0).fit.steps == 3


def test_a_run_that_diverges_leaves_no_state(base, windows, catalogue, tmp_path):
    path = tmp_path / "run"
    wild = replace(CONFIG, learning_rate=1e30)
    with pytest.raises(DivergedError, match="lower the learning"):
        tune(base, windows, catalogue, wild, state_path=path)
    assert list(tmp_path.iterdir()) == []


def test_weights_that_are_no_numbers_at_the_end_are_refused(base, windows, catalogue, monkeypatch):
    def diverging_fit(*arguments, **options):
        result = fit(*arguments, **options)
        return replace(result, last={name: w * torch.nan for name, w in result.last.items()})

    monkeypatch.setattr(tuning, "fit", diverging_fit)
    with pytest.raises(DivergedError, match="lower the learning"):
        tune(base, windows, catalogue, replace(CONFIG, steps=1))


def test_a_horizon_beyond_the_model_is_refused(base, windows, catalogue):
    with pytest.raises(DataError, match="at most 32 steps"):
        tune(base, windows, catalogue, replace(CONFIG, horizon=33))


def test_a_history_shorter_than_training_knows_is_refused(base, windows, catalogue):
    with pytest.raises(DataError, match="at least 32"):
        tune(base, windows, catalogue, replace(CONFIG, history_steps=31))


def test_data_too_short_to_tune_on_are_refused(base, make_window, catalogue):
    with pytest.raises(DataError, match="samples in a row"):
        tune(base, [make_window(steps=50)], catalogue, CONFIG)


def test_three_days_of_hours_are_enough(base, make_window, catalogue):
    three_days = [make_window(seed, steps=72) for seed in range(2)]
    tuned = tune(base, three_days, catalogue, replace(CONFIG, steps=2))
    assert len(tuned.held_back.cuts) > 8


def test_ninety_percent_missing_is_used_as_far_as_it_goes(base, make_window, catalogue):
    rng = np.random.default_rng(0)
    window = make_window(steps=400)
    values = np.where(rng.random(window.values.shape) < 0.9, np.nan, window.values)
    holed = replace(window, values=values.astype(np.float32))
    tuned = tune(base, [holed], catalogue, replace(CONFIG, steps=2))
    assert all(bool(torch.isfinite(w).all()) for w in tuned.weights.values())


def schedule(windows, **options):
    return fit_config(split_in_time(windows, least_steps=48), TuneConfig(**options))


def test_more_data_bear_more_steps(make_window):
    few, many = (
        schedule([make_window(seed, steps=2000) for seed in range(count)]) for count in (2, 20)
    )
    assert few.steps < many.steps
    assert schedule([make_window(steps=72)]).steps == tuning.LEAST_STEPS


def test_less_than_a_week_takes_smaller_steps(make_window):
    assert schedule([make_window(steps=72)]).learning_rate == pytest.approx(
        tuning.LEARNING_RATE * 2 / 7
    )
    assert schedule([make_window(steps=720)]).learning_rate == tuning.LEARNING_RATE
    assert schedule([make_window(steps=72)], learning_rate=0.1).learning_rate == 0.1


def test_few_days_held_back_have_to_show_more(make_window):
    def gain(steps, step_ms=3_600_000):
        window = replace(make_window(steps=steps), step_ms=step_ms)
        return least_gain(split_in_time([window], least_steps=48))

    assert gain(24 * 100) == pytest.approx(0.005)
    assert gain(24 * 3) == pytest.approx(0.035)
    assert gain(24 * 3, step_ms=1000) == pytest.approx(0.005)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("horizon", 0),
        ("series", 0),
        ("seed", -1),
        ("steps", 0),
        ("learning_rate", 0.0),
        ("learning_rate", float("nan")),
        ("synthetic_ratio", 1.0),
        ("held_back_ratio", 1.0),
        ("held_back_ratio", 0.0),
    ],
)
def test_impossible_settings_are_refused(name, value):
    with pytest.raises(DataError, match=name):
        TuneConfig(**{name: value})
