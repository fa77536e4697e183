"""What is held back, and when one set of weights counts as better than another."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpi.window import KpiWindow
from model.accuracy import Accuracy
from model.predictor import ContextSpan, Forecast, ModelIdentity, Rung
from training.errors import DataError
from training.held_back import HeldBack, Scores, compare, split_in_time

HOUR_MS = 3_600_000
START_MS = 1_767_571_200_000
LEAST_STEPS = 48


def recording(steps: int, *, cell: str = "a", step_ms: int = HOUR_MS, start_ms: int = START_MS):
    values = np.arange(steps, dtype=np.float32)[None]
    return KpiWindow(cell, ("RRU.PrbTotDl",), start_ms, step_ms, values)


def runs(count: int, steps: int = 300) -> list[KpiWindow]:
    """One after the other, an hour apart, a sample a second."""
    return [
        recording(steps, cell=f"run {i}", step_ms=1000, start_ms=START_MS + i * HOUR_MS)
        for i in range(count)
    ]


def split(windows, ratio=None):
    return split_in_time(windows, ratio, least_steps=LEAST_STEPS)


@dataclass
class LastValue:
    """Forecasts the last value, `error` too high; notes what it was shown."""

    error: float = 0.0
    gaps: bool = False

    def __post_init__(self) -> None:
        self.seen: list[KpiWindow] = []

    identity = ModelIdentity("last", "1", "")
    max_horizon = 1000
    level_range = (0.1, 0.9)

    def predict(self, windows, horizon, levels):
        self.seen += windows
        return [self._forecast(window, horizon, levels) for window in windows]

    def _forecast(self, window, horizon, levels):
        values = np.full((len(window.kpis), horizon, len(levels)), window.values[0, -1])
        values += self.error
        if self.gaps:
            values[:, 0] = np.nan
        return Forecast(
            cell=window.cell,
            kpis=window.kpis,
            start_ms=window.end_ms,
            step_ms=window.step_ms,
            levels=tuple(levels),
            values=values.astype(np.float32),
            model=self.identity,
            rung=Rung.FULL,
            context=ContextSpan.of(window, window.steps),
        )


def test_a_long_recording_is_cut_in_time():
    found = split([recording(2000)])
    assert found.tune[0].steps == 1700
    assert found.held[0].steps == 2000
    assert found.ratio == pytest.approx(0.15)
    assert not found.whole_runs


def test_of_three_days_one_is_held_back():
    found = split([recording(72, cell="a"), recording(72, cell="b")])
    assert [window.steps for window in found.tune] == [48, 48]
    assert (found.days, found.held_days) == (2, 1)


def test_what_is_left_to_learn_from_is_long_enough_where_it_can_be():
    assert split([recording(66)]).tune[0].steps == LEAST_STEPS


def test_seconds_need_no_whole_day_held_back():
    assert split([recording(3000, step_ms=1000)]).ratio == pytest.approx(0.15)


def test_the_order_of_recordings_of_unlike_sampling_does_not_matter():
    windows = [recording(240, cell="hours"), recording(960, cell="quarters", step_ms=HOUR_MS // 4)]
    assert split(windows).ratio == split(windows[::-1]).ratio == pytest.approx(0.15)
    short = [recording(96), recording(96, cell="b"), recording(384, cell="c", step_ms=HOUR_MS // 4)]
    assert split(short).ratio == split(short[::-1]).ratio == pytest.approx(0.25)


def test_the_share_can_be_chosen():
    assert split([recording(1000)], 0.4).tune[0].steps == 600


def test_of_many_short_runs_the_latest_are_held_back_whole():
    windows = runs(20)
    found = split(list(reversed(windows)))
    assert found.whole_runs
    assert [window.cell for window in found.tune] == [window.cell for window in windows[:17]]
    assert [window.cell for window in found.held] == [window.cell for window in windows[17:]]


def test_a_few_recordings_far_apart_are_cut_in_time():
    assert not split(runs(3)).whole_runs


def test_cells_recorded_side_by_side_are_cut_in_time():
    assert not split([recording(500, cell=str(i)) for i in range(40)]).whole_runs


@given(count=st.integers(8, 60), ratio=st.floats(0.01, 0.99))
def test_some_runs_teach_and_some_are_held_back_whatever_the_share(count, ratio):
    found = split(runs(count), ratio)
    assert found.tune
    assert found.held
    assert len(found.tune) + len(found.held) == count


def held_back(windows, *, horizon=24, history_steps=1000, ratio=None) -> HeldBack:
    return HeldBack(split(windows, ratio), horizon, history_steps, 32)


def test_origins_lie_in_the_held_back_part_and_leave_the_horizon():
    found = held_back([recording(2000)])
    origins = [origin for _, origin in found.cuts]
    assert min(origins) == 1700
    assert max(origins) <= 2000 - 24
    assert len(origins) > 8


def test_a_short_held_back_part_shortens_the_horizon():
    found = held_back([recording(72)])
    assert found.horizon == 12
    assert len(found.cuts) > 8


def test_a_forecast_sees_the_samples_before_its_origin_and_no_more_than_allowed():
    found = held_back([recording(2000)], history_steps=100)
    predictor = LastValue()
    found.score(predictor)
    assert len(predictor.seen) == len(found.cuts)
    for window, (_, origin) in zip(predictor.seen, found.cuts, strict=True):
        assert window.steps == 100
        assert window.values[0, -1] == origin - 1
        assert window.end_ms == START_MS + origin * HOUR_MS


def test_origins_without_anything_to_compare_with_are_left_out():
    window = recording(2000)
    values = window.values.copy()
    values[:, 1800:] = np.nan
    found = held_back([replace(window, values=values)])
    assert max(origin for _, origin in found.cuts) < 1800


def test_a_held_back_part_without_samples_is_refused():
    window = recording(2000)
    values = window.values.copy()
    values[:, 1600:] = np.nan
    with pytest.raises(DataError, match="to compare forecasts with what came"):
        held_back([replace(window, values=values)])


def test_recordings_too_short_to_compare_on_are_refused():
    with pytest.raises(DataError, match="the longest has 30"):
        held_back([recording(30)])


def test_many_origins_are_thinned():
    assert len(held_back([recording(2000, cell=str(i)) for i in range(100)]).cuts) == 600


def test_scores_are_those_of_all_origins():
    scores = held_back([recording(2000)]).score(LastValue())
    card = scores.card()
    assert card["kpis"]["RRU.PrbTotDl"]["wql"] == pytest.approx(scores.wql)
    assert card["targets"] == scores.targets == 24 * len(held_back([recording(2000)]).cuts)


def test_less_error_everywhere_is_better_and_more_is_not():
    found = held_back([recording(2000)])
    before, after = found.score(LastValue()), found.score(LastValue(error=3.0))
    assert compare(before, after, 0.005).is_better
    assert not compare(after, before, 0.005).is_better
    assert not compare(before, before, 0.005).is_better


def test_a_predictor_that_leaves_targets_out_is_not_better():
    found = held_back([recording(2000)])
    before, after = found.score(LastValue()), found.score(LastValue(error=3.0, gaps=True))
    assert not compare(before, after, 0.005).is_better


def scores(errors) -> Scores:
    """One KPI, 100 targets of size 1 a block, with these mean errors."""
    return Scores(
        [{"x": Accuracy(100, 100.0, np.array([100.0 * error]), 0, 0, 0, 0, 0)} for error in errors]
    )


def test_a_gain_in_one_block_only_is_not_sure():
    before = scores([0.3] * 8)
    assert not compare(before, scores([0.3] * 7 + [0.1]), 0.005).is_better
    assert compare(before, scores([0.27, 0.28] * 4), 0.005).is_better


def test_a_sure_gain_that_is_tiny_is_none():
    assert not compare(scores([0.3] * 8), scores([0.2995] * 8), 0.005).is_better


def test_too_few_blocks_prove_nothing():
    found = compare(scores([0.3] * 3), scores([0.1] * 3), 0.005)
    assert math.isinf(found.error)
    assert not found.is_better


def test_targets_that_are_all_zero_prove_nothing():
    nothing = Scores([{"x": Accuracy(100, 0.0, np.zeros(1), 0, 0, 0, 0, 0)}] * 8)
    assert math.isnan(nothing.wql)
    assert nothing.card()["wql"] is None
    assert not compare(nothing, nothing, 0.005).is_better


@pytest.mark.parametrize("blocks", [4, 5, 8])
def test_noise_without_a_gain_seldom_counts_as_one(blocks):
    rng = np.random.default_rng(0)
    taken = 0
    for _ in range(1_000):
        errors = rng.uniform(0.1, 1.0, blocks)
        luck = errors * (1 + 0.2 * rng.standard_normal(blocks))
        taken += compare(scores(errors), scores(luck), 0.0).is_better
    assert 0.03 < taken / 1_000 < 0.08
