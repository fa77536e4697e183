"""A run learns, stops, and goes on after a kill as if nothing had happened."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch

from model.forecaster import Forecaster
from training.batch import make_batch
from training.errors import DivergedError, ResumeError, StoreError
from training.fit import Progress, _Run, fit, run_fingerprint
from training.fit_config import FitConfig, learning_rate
from training.loss import batch_loss
from training.source import WindowSource
from training.state import save_state
from training.state_keeper import StateKeeper
from training.stopping import sigterm_interrupts

FIT = FitConfig(
    steps=12, batches_per_step=1, warmup_steps=3, evaluate_every=4, validation_batches=2
)


@pytest.fixture
def source(make_window, tiny_config, catalogue):
    windows = [make_window(seed) for seed in range(2)]
    return WindowSource(windows, tiny_config, catalogue, series_per_batch=4)


class Killed(Exception):
    pass


def stop_at(step: int, error: type[BaseException]):
    def watch(progress):
        if progress.step == step:
            raise error

    return watch


def same(one, two) -> bool:
    return all(torch.equal(one[name], two[name]) for name in one)


def test_loss_falls(source, tiny_config):
    config = replace(FIT, steps=60, evaluate_every=20, learning_rate=5e-3)
    result = fit(config, tiny_config, source, source)
    assert result.losses[-1][1] < 0.8 * batch_loss_of_untrained(source, tiny_config)
    assert result.best_loss == min(loss for _, loss in result.losses)


def batch_loss_of_untrained(source, config) -> float:
    torch.manual_seed(0)
    batches = [source.batch(np.random.default_rng([0, 1, index])) for index in range(2)]
    return float(np.mean([float(batch_loss(Forecaster(config), b).detach()) for b in batches]))


def test_the_same_seed_gives_the_same_weights(source, tiny_config):
    one, two = (fit(FIT, tiny_config, source, source) for _ in range(2))
    assert same(one.weights, two.weights)


def test_another_seed_gives_other_weights(source, tiny_config):
    one = fit(FIT, tiny_config, source, source)
    two = fit(replace(FIT, seed=1), tiny_config, source, source)
    assert not same(one.weights, two.weights)


def test_a_run_begins_with_the_weights_it_is_given_and_judges_them_first(source, tiny_config):
    given = fit(replace(FIT, seed=3), tiny_config, source, source).weights
    still = replace(FIT, steps=1, learning_rate=1e-30)
    result = fit(still, tiny_config, source, source, initial=given)
    assert [step for step, _ in result.losses] == [0, 1]
    assert same(result.last, given)
    assert not same(fit(still, tiny_config, source, source).last, given)


def test_given_weights_are_kept_where_no_step_makes_them_better(source, tiny_config):
    given = fit(replace(FIT, steps=60, learning_rate=5e-3), tiny_config, source, source).weights
    wild = replace(FIT, steps=4, learning_rate=10.0, warmup_steps=0)
    result = fit(wild, tiny_config, source, source, initial=given)
    assert same(result.weights, given)
    assert not same(result.last, given)


def test_a_run_from_given_weights_goes_on_after_a_stop(source, tiny_config, tmp_path):
    given = fit(replace(FIT, seed=3), tiny_config, source, source).weights
    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        fit(
            FIT,
            tiny_config,
            source,
            source,
            initial=given,
            state_path=path,
            on_progress=stop_at(5, KeyboardInterrupt),
        )
    resumed = fit(FIT, tiny_config, source, source, initial=given, state_path=path)
    whole = fit(FIT, tiny_config, source, source, initial=given)
    assert same(resumed.last, whole.last)
    assert list(resumed.losses) == list(whole.losses)


def test_other_given_weights_make_it_another_run(source, tiny_config, tmp_path):
    given = fit(FIT, tiny_config, source, source).weights
    path = tmp_path / "run"
    fit(FIT, tiny_config, source, source, initial=given, state_path=path)
    moved = {name: weight + 1e-3 for name, weight in given.items()}
    for initial in (moved, None):
        with pytest.raises(ResumeError, match="other settings or data"):
            fit(FIT, tiny_config, source, source, initial=initial, state_path=path)


def test_a_stopped_run_ends_with_the_weights_of_one_that_was_not(source, tiny_config, tmp_path):
    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        fit(
            FIT,
            tiny_config,
            source,
            source,
            state_path=path,
            on_progress=stop_at(6, KeyboardInterrupt),
        )
    resumed = fit(FIT, tiny_config, source, source, state_path=path)
    whole = fit(FIT, tiny_config, source, source)
    assert same(resumed.weights, whole.weights)
    assert list(resumed.losses) == list(whole.losses)


def test_a_killed_run_goes_on_from_its_last_saved_state(source, tiny_config, tmp_path):
    path = tmp_path / "run"
    config = replace(FIT, save_every_seconds=0.0)
    with pytest.raises(Killed):
        fit(config, tiny_config, source, source, state_path=path, on_progress=stop_at(7, Killed))
    steps = []
    resumed = fit(
        config,
        tiny_config,
        source,
        source,
        state_path=path,
        on_progress=lambda progress: steps.append(progress.step),
    )
    assert steps[0] == 7
    assert same(resumed.weights, fit(config, tiny_config, source, source).weights)


def test_a_state_of_another_run_is_refused(source, tiny_config, tmp_path):
    path = tmp_path / "run"
    fit(FIT, tiny_config, source, source, state_path=path)
    with pytest.raises(ResumeError, match="other settings or data"):
        fit(replace(FIT, seed=5), tiny_config, source, source, state_path=path)
    with pytest.raises(ResumeError, match="other settings or data"):
        fit(FIT, tiny_config, source, source, state_path=path, data=["other"])


def test_a_run_begins_again_where_a_state_of_its_name_is_of_other_data(
    source, tiny_config, tmp_path, caplog
):
    path = tmp_path / "run"
    fit(FIT, tiny_config, source, source, state_path=path, run_name="weekly")
    told = []
    fit(
        *(FIT, tiny_config, source, source),
        state_path=path,
        data=["other"],
        run_name="weekly",
        on_progress=lambda progress: told.append(progress.step),
    )
    assert told[0] == 1
    assert f"{path} is of other data or settings" in caplog.text


@pytest.mark.parametrize(("left", "found"), [("weekly", "daily"), ("weekly", ""), ("", "weekly")])
def test_a_state_of_another_name_is_not_begun_again(source, tiny_config, tmp_path, left, found):
    path = tmp_path / "run"
    fit(FIT, tiny_config, source, source, state_path=path, run_name=left)
    before = path.read_bytes()
    with pytest.raises(ResumeError, match="other settings or data"):
        fit(FIT, tiny_config, source, source, state_path=path, run_name=found, data=["other"])
    assert path.read_bytes() == before


def test_a_damaged_state_is_refused(source, tiny_config, tmp_path):
    path = tmp_path / "run"
    path.write_bytes(b"half a file")
    with pytest.raises(ResumeError, match="damaged"):
        fit(FIT, tiny_config, source, source, state_path=path)


def test_a_run_without_gain_stops_early_with_its_best_weights(source, tiny_config):
    config = replace(FIT, steps=400, learning_rate=1e-30, evaluate_every=1, patience=3)
    result = fit(config, tiny_config, source, source)
    assert result.stopped_early
    assert result.steps < 20


def test_patience_is_kept_through_a_stop(source, tiny_config, tmp_path):
    path = tmp_path / "run"
    config = replace(FIT, steps=400, learning_rate=1e-30, evaluate_every=1, patience=6)
    whole = fit(config, tiny_config, source, source)
    with pytest.raises(KeyboardInterrupt):
        fit(
            config,
            tiny_config,
            source,
            source,
            state_path=path,
            on_progress=stop_at(whole.steps - 2, KeyboardInterrupt),
        )
    resumed = fit(config, tiny_config, source, source, state_path=path)
    assert (resumed.steps, resumed.stopped_early) == (whole.steps, True)
    assert resumed.best_loss == whole.best_loss


def test_progress_tells_speed_and_time_left(source, tiny_config):
    seen: list[Progress] = []
    fit(FIT, tiny_config, source, source, on_progress=seen.append)
    assert [progress.step for progress in seen] == list(range(1, 13))
    assert seen[2].validation_loss is None
    assert seen[3].validation_loss is not None
    assert seen[-1].seconds_left == 0
    assert all(progress.steps_per_second > 0 for progress in seen)


def test_the_learning_rate_warms_up_and_falls_to_two_percent():
    config = FitConfig(steps=1000, warmup_steps=100, learning_rate=1.0)
    assert learning_rate(config, 0) == pytest.approx(0.01)
    assert learning_rate(config, 99) == pytest.approx(1.0)
    assert learning_rate(config, 550) == pytest.approx(0.51)
    assert learning_rate(config, 1000) == pytest.approx(0.02)


def test_how_often_states_are_saved_does_not_make_it_another_run(tiny_config):
    other = replace(FIT, save_every_seconds=1.0)
    assert run_fingerprint(FIT, tiny_config, []) == run_fingerprint(other, tiny_config, [])
    assert run_fingerprint(FIT, tiny_config, []) != run_fingerprint(FIT, tiny_config, ["x"])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", 0),
        ("batches_per_step", 0),
        ("evaluate_every", 0),
        ("validation_batches", 0),
        ("patience", 0),
        ("seed", -1),
        ("warmup_steps", -1),
        ("learning_rate", 0.0),
        ("learning_rate", float("nan")),
        ("gradient_norm", float("inf")),
    ],
)
def test_impossible_settings_are_refused(name, value):
    with pytest.raises(ValueError, match=name):
        FitConfig(**{name: value})


def test_a_run_that_diverges_says_so(source, tiny_config):
    wild = replace(FIT, learning_rate=1e30, warmup_steps=0)
    with pytest.raises(DivergedError, match="lower the learning rate"):
        fit(wild, tiny_config, source, source)


def test_a_state_that_cannot_be_written_shows_before_the_first_step(source, tiny_config, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        fit(
            FIT,
            tiny_config,
            source,
            source,
            state_path=tmp_path / "file" / "run",
            on_progress=stop_at(1, Killed),
        )


def test_a_series_never_seen_does_not_teach(tiny_config):
    values = np.full((1, 1, 64), np.nan, dtype=np.float32)
    batch = make_batch(
        values,
        np.ones((1, 1, 16), dtype=np.float32),
        tiny_config,
        origin_ms=np.array([1_767_571_200_000]),
        step_ms=3_600_000,
        kinds=np.zeros((1, 1), np.int64),
        lower=np.full((1, 1), -np.inf, np.float32),
        upper=np.full((1, 1), np.inf, np.float32),
    )
    assert float(batch_loss(Forecaster(tiny_config), batch).detach()) == 0


def test_every_weight_gets_a_gradient(tiny_config):
    forecaster = Forecaster(tiny_config)
    torch.nn.init.normal_(forecaster.head.out.weight, std=0.1)
    rng = np.random.default_rng(0)
    kinds = np.arange(6).reshape(3, 2)
    batch = make_batch(
        rng.normal(size=(3, 2, 96)).astype(np.float32),
        rng.normal(size=(3, 2, 32)).astype(np.float32),
        tiny_config,
        origin_ms=np.full(3, 1_767_571_200_000),
        step_ms=3_600_000,
        kinds=kinds,
        lower=np.zeros((3, 2), np.float32),
        upper=np.full((3, 2), np.inf, np.float32),
    )
    batch_loss(forecaster, batch).backward()
    silent = [
        name
        for name, weight in forecaster.named_parameters()
        if weight.grad is None or not weight.grad.abs().sum()
    ]
    assert silent == []


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_of_judging_loses_no_judgement(
    number, source, tiny_config, tmp_path, monkeypatch
):
    path = tmp_path / "run"
    judged = _Run.evaluate

    def interrupted(run):
        os.kill(os.getpid(), number)
        judged(run)

    with monkeypatch.context() as patched:
        patched.setattr(_Run, "evaluate", interrupted)
        with pytest.raises(KeyboardInterrupt), sigterm_interrupts():
            fit(FIT, tiny_config, source, source, state_path=path)
    resumed = fit(FIT, tiny_config, source, source, state_path=path)
    whole = fit(FIT, tiny_config, source, source)
    assert list(resumed.losses) == list(whole.losses)
    assert same(resumed.weights, whole.weights)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_after_the_last_step_stops_the_run_with_its_steps_saved(
    number, source, tiny_config, tmp_path, monkeypatch
):
    path = tmp_path / "run"
    save = StateKeeper.save_when_due

    def late(keeper, snapshot):
        save(keeper, snapshot)
        if snapshot().step == FIT.steps:
            os.kill(os.getpid(), number)

    with monkeypatch.context() as patched:
        patched.setattr(StateKeeper, "save_when_due", late)
        with pytest.raises(KeyboardInterrupt), sigterm_interrupts():
            fit(FIT, tiny_config, source, source, state_path=path)
    told: list[Progress] = []
    resumed = fit(FIT, tiny_config, source, source, state_path=path, on_progress=told.append)
    assert told == []
    assert same(resumed.weights, fit(FIT, tiny_config, source, source).weights)


def test_a_run_is_not_lost_where_the_store_fails_after_its_last_step(
    source, tiny_config, tmp_path, monkeypatch
):
    def failing(state, *rest):
        if state.step == FIT.steps:
            raise StoreError("the store does not answer")
        save_state(state, *rest)

    monkeypatch.setattr("training.state_keeper.save_state", failing)
    result = fit(FIT, tiny_config, source, source, state_path=tmp_path / "run")
    assert result.steps == FIT.steps


def test_a_store_that_fails_while_a_run_goes_on_costs_it_nothing(
    source, tiny_config, tmp_path, monkeypatch
):
    told: list[tuple[int, str | None]] = []
    saved = save_state

    def failing(state, *rest):
        if 2 <= state.step <= 4:
            raise StoreError("the store does not answer")
        saved(state, *rest)

    monkeypatch.setattr("training.state_keeper.save_state", failing)
    often = replace(FIT, save_every_seconds=0.0)
    result = fit(
        *(often, tiny_config, source, source),
        state_path=tmp_path / "run",
        on_progress=lambda progress: told.append((progress.step, progress.trouble)),
    )
    assert [step for step, trouble in told if trouble] == [3, 4, 5]
    assert "the store does not answer" in str(told[2][1])
    assert same(result.weights, fit(FIT, tiny_config, source, source).weights)


@pytest.mark.usefixtures("ctrl_c")
def test_a_second_interrupt_does_not_wait_and_keeps_what_was_saved(
    source, tiny_config, tmp_path, monkeypatch
):
    path = tmp_path / "run"

    def impatient(_run, _stops):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr(_Run, "_step", impatient)
        with pytest.raises(KeyboardInterrupt):
            fit(FIT, tiny_config, source, source, state_path=path)
    resumed = fit(FIT, tiny_config, source, source, state_path=path)
    assert same(resumed.weights, fit(FIT, tiny_config, source, source).weights)
