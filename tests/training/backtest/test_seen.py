"""Whether a checkpoint's own recordings reach into what is tested."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from model.calibration import Calibration
from model.checkpoint import Checkpoint
from model.forecaster import Forecaster
from training.backtest import BacktestConfig, origins_of
from training.backtest.seen import learnt_until_ms, seen_note
from training.dataset import latest_end

CONFIG = BacktestConfig(horizon=6)


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.fixture
def checkpoint(tiny_config):
    return Checkpoint("tiny", "1", tiny_config, Forecaster(tiny_config).state_dict(), "1")


def test_the_latest_of_weights_their_base_and_calibration_counts(checkpoint):
    dates = ["2026-01-01T00:00:00+00:00", "2026-03-01T00:00:00+00:00", "2026-02-01T00:00:00+00:00"]
    assert learnt_until_ms(checkpoint) is None
    base = replace(checkpoint, training={"base": {"training": {"data_until": dates[0]}}})
    assert learnt_until_ms(base) == ms(dates[0])
    story = {"kept": {"provenance": {"data_until": dates[1]}}, "data_until": dates[2]}
    rows = ((0.0,) * len(checkpoint.config.levels),)
    calibration = Calibration(checkpoint.config.levels, (1,), {}, rows, provenance=story)
    assert learnt_until_ms(replace(base, calibration=calibration)) == ms(dates[1])


def test_nothing_is_said_where_recordings_end_before_the_first_origin(checkpoint, make_window):
    window = make_window()
    first_ms = window.start_ms + origins_of(window, CONFIG)[0] * window.step_ms
    until = datetime.fromtimestamp(first_ms / 1000, UTC)
    fair = replace(checkpoint, training={"data_until": until.isoformat()})
    assert seen_note(fair, [window], CONFIG) is None
    assert seen_note(checkpoint, [window], CONFIG) is None


def test_recordings_of_the_tested_days_are_told(checkpoint, make_window):
    window = make_window()
    same = replace(checkpoint, training={"data_until": latest_end([window])})
    note = seen_note(same, [window], CONFIG)
    assert note is not None
    assert f"up to {datetime.fromtimestamp(window.end_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC" in note
    assert "after 100% of these origins" in note
