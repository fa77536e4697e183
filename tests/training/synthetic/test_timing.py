"""Steps, lengths and the clock: shares as stated, days on the absolute clock."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import numpy as np
import pytest

from training.synthetic.timing import (
    DAY_MS,
    HELD_OUT_STEPS_MS,
    HOUR_MS,
    MINUTE_MS,
    REGIME_SHARES,
    TRAINING_STEPS_MS,
    WEEK_MS,
    Clock,
    Regime,
    draw_key,
    draw_starts,
    draw_timing,
)

DRAWS = 4_000


def _timings(held_out: bool):
    rng = np.random.default_rng(3)
    return [
        draw_timing(
            rng,
            max_context_steps=768,
            max_history_steps=1440,
            max_horizon=192,
            patch=16,
            held_out=held_out,
        )
        for _ in range(DRAWS)
    ]


def test_regimes_and_steps_come_in_the_stated_shares():
    timings = _timings(held_out=False)
    regimes = Counter(timing.regime for timing in timings)
    for regime, share in REGIME_SHARES.items():
        assert regimes[regime] / DRAWS == pytest.approx(share, abs=0.025)
    steps = Counter(timing.step_ms for timing in timings)
    hourly = sum(steps[step] for step in TRAINING_STEPS_MS[Regime.HOUR])
    assert steps[HOUR_MS] / hourly == pytest.approx(0.6, abs=0.04)


def test_training_never_draws_a_held_out_step():
    known = {step for steps in TRAINING_STEPS_MS.values() for step in steps}
    unseen = {step for steps in HELD_OUT_STEPS_MS.values() for step in steps} - {DAY_MS, WEEK_MS}
    assert {timing.step_ms for timing in _timings(held_out=False)} == known
    assert not known & unseen
    held_out = Counter(timing.step_ms in unseen for timing in _timings(held_out=True))
    assert held_out[True] / DRAWS == pytest.approx(0.48, abs=0.04)


def test_short_horizons_are_drawn_more_often():
    patches = Counter(timing.horizon // 16 for timing in _timings(held_out=False))
    assert set(patches) == set(range(1, 13))
    assert patches[1] > 2 * patches[3]


def test_only_samplings_with_lags_get_a_long_history():
    for timing in _timings(held_out=False):
        if timing.regime in (Regime.SECOND, Regime.DAY):
            assert timing.history_steps == timing.context_steps


def test_many_histories_are_whole_days():
    by_two_minutes = [
        timing for timing in _timings(held_out=False) if timing.step_ms == 2 * MINUTE_MS
    ]
    one_day = [timing for timing in by_two_minutes if timing.history_steps == 720]
    assert len(one_day) > 0.1 * len(by_two_minutes)
    assert {timing.context_steps for timing in one_day} == {720}
    hourly = [timing for timing in _timings(held_out=False) if timing.step_ms == HOUR_MS]
    for weeks in (1, 4):
        steps = -(-weeks * 168 // 16) * 16
        assert sum(t.history_steps == steps for t in hourly) > 0.05 * len(hourly)


def test_a_key_without_a_share_is_never_drawn():
    rng = np.random.default_rng(0)
    assert {draw_key(rng, {"never": 0.0, "always": 2.0}) for _ in range(100)} == {"always"}


def test_starts_lie_on_the_step():
    starts = draw_starts(np.random.default_rng(0), 200, 15 * MINUTE_MS)
    assert (starts % (15 * MINUTE_MS) == 0).all()
    assert len(set(starts // DAY_MS % 7)) == 7


def test_local_time_agrees_with_the_calendar():
    start = datetime(2026, 11, 29, 22, 0, tzinfo=UTC)
    start_ms = int(start.timestamp() * 1000)
    clock = Clock(Regime.HOUR, HOUR_MS, np.array([start_ms]), 30)
    shift_ms = np.array([-3 * HOUR_MS])
    local = clock.local(shift_ms)
    for sample in range(30):
        then = datetime.fromtimestamp((start_ms + shift_ms[0]) / 1000 + sample * 3600, tz=UTC)
        assert local.weekday[0, local.day[0, sample]] == then.weekday()
        assert local.day_ratio[0, sample] * 24 == pytest.approx(then.hour, abs=1e-4)
        assert local.day[0, sample] == (then.date() - datetime(2026, 11, 29).date()).days


def test_midnight_belongs_to_the_new_day_at_every_step():
    for step_ms in (MINUTE_MS, 3 * MINUTE_MS, 20 * MINUTE_MS, HOUR_MS):
        length = 3 * DAY_MS // step_ms + 1
        clock = Clock(Regime.MINUTE, step_ms, np.array([20_000 * DAY_MS]), length)
        local = clock.local(np.array([0]))
        exact = np.arange(length) * step_ms // DAY_MS
        np.testing.assert_array_equal(local.day[0], exact)


def test_taken_rows_keep_their_starts():
    clock = Clock(Regime.DAY, WEEK_MS, np.array([1, 2, 3]), 5)
    assert clock.take(np.array([2, 0])).start_ms.tolist() == [3, 1]
    assert clock.rows == 3
    assert clock.days_since_start().tolist() == [0.0, 7.0, 14.0, 21.0, 28.0]
