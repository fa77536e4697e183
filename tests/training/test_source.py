"""Batches from recorded windows: cut at origins, never beyond the data, repeatable."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from kpi.catalogue import KpiKind
from kpi.window import PlannedEvent
from model.planned import input_width, planned_inputs, planned_width
from training.dataset import earlier_parts
from training.errors import DataError
from training.source import MixedSource, SyntheticSource, WindowSource
from training.synthetic import BatchSpec, sample_batch
from training.synthetic.timing import DAY_MS


@pytest.fixture
def source(make_window, tiny_config, catalogue):
    windows = [make_window(seed) for seed in range(3)]
    return WindowSource(windows, tiny_config, catalogue, series_per_batch=8)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_the_same_random_numbers_give_the_same_batch(source):
    one, two = source.batch(rng()), source.batch(rng())
    torch.testing.assert_close(one.target, two.target, equal_nan=True)
    torch.testing.assert_close(one.series.values, two.series.values, equal_nan=True)


def test_a_batch_fits_the_forecaster(source, tiny_config):
    for seed in range(20):
        batch = source.batch(rng(seed))
        assert batch.target.shape[-1] % tiny_config.patch == 0
        assert batch.target.shape[-1] <= tiny_config.max_horizon
        assert batch.series.values.shape[:2] == batch.target.shape[:2] == (8, 1)
        assert batch.windows == 8


def test_target_follows_history_in_the_recording(source, make_window):
    recorded = [make_window(seed).values[0] for seed in range(3)]
    batch = source.batch(rng(3))
    joined = torch.cat([batch.series.values, batch.target], dim=-1)[:, 0].numpy()
    for row in joined:
        seen = row[~np.isnan(row)]
        places = [np.flatnonzero(series == seen[0]) for series in recorded]
        assert any(
            np.array_equal(series[start : start + len(seen)], seen)
            for series, starts in zip(recorded, places, strict=True)
            for start in starts
        )


def test_a_batch_has_one_step_and_one_number_of_kpis(make_window, tiny_config, catalogue):
    hourly, pair = make_window(0), make_window(1, kpis=("RRU.PrbTotDl", "RRU.PrbTotUl"))
    minutely = replace(make_window(2), step_ms=60_000)
    source = WindowSource([hourly, pair, minutely], tiny_config, catalogue, series_per_batch=6)
    seen = {
        (batch.series.step_ms, batch.target.shape[1])
        for batch in (source.batch(rng(seed)) for seed in range(40))
    }
    assert seen == {(3_600_000, 1), (3_600_000, 2), (60_000, 1)}


def test_cells_are_shown_with_all_or_some_of_their_kpis(make_window, tiny_config, catalogue):
    names = ("RRU.PrbTotDl", "DRB.UEThpDl", "RRU.PrbTotUl", "RRC.ConnMean")
    window = make_window(kpis=names)
    kinds = [catalogue.resolve(name).kind.number for name in names]
    values = np.arange(4, dtype=np.float32)[:, None] + np.zeros((4, 400), dtype=np.float32)
    source = WindowSource(
        [replace(window, values=values)], tiny_config, catalogue, series_per_batch=12
    )
    shown = []
    for seed in range(60):
        batch = source.batch(rng(seed))
        places = batch.series.values[0, :, -1].int().tolist()
        assert batch.target[0, :, 0].int().tolist() == places  # its own future
        assert batch.series.kinds[0].tolist() == [kinds[place] for place in places]
        upper = [catalogue.resolve(names[place]).upper for place in places]
        assert batch.series.upper[0].tolist() == [np.inf if u is None else u for u in upper]
        assert len(set(places)) == len(places)
        assert batch.target.shape[0] == 12 // len(places)
        shown.append(tuple(places))
    assert {len(places) for places in shown} == {1, 2, 3, 4}
    assert 0.45 < np.mean([len(places) == 4 for places in shown]) < 0.85
    assert len(set(shown)) > 15


def test_a_third_of_the_batches_or_more_show_a_single_kpi(make_window, tiny_config, catalogue):
    window = make_window(kpis=tuple(f"custom.{place}" for place in range(12)))
    source = WindowSource([window], tiny_config, catalogue, series_per_batch=12)
    shown = [source.batch(rng(seed)).target.shape[1] for seed in range(150)]
    assert 0.27 < np.mean(np.array(shown) == 1) < 0.48
    assert 0.27 < np.mean(np.array(shown) == 12) < 0.48


def test_kinds_and_limits_come_from_the_catalogue(source):
    series = source.batch(rng()).series
    assert (series.kinds == list(KpiKind).index(KpiKind.PERCENT)).all()
    assert (series.lower == 0).all()
    assert (series.upper == 100).all()


def test_windows_too_short_to_learn_from_are_refused(make_window, tiny_config, catalogue):
    with pytest.raises(DataError, match="48 samples in a row"):
        WindowSource([make_window(steps=30)], tiny_config, catalogue)


def test_a_window_of_the_shortest_length_can_be_learnt_from(make_window, tiny_config, catalogue):
    source = WindowSource([make_window(steps=48)], tiny_config, catalogue, series_per_batch=4)
    batch = source.batch(rng())
    assert not torch.isnan(batch.target).all()


def test_origins_lie_in_the_last_part_and_histories_reach_back_before_it(
    make_window, tiny_config, catalogue
):
    window = make_window(steps=200)
    count = np.arange(200, dtype=np.float32)[None]  # a sample's value is its position
    source = WindowSource(
        [replace(window, values=count)], tiny_config, catalogue, series_per_batch=8, last_ratio=0.1
    )
    firsts, befores = [], []
    for seed in range(30):
        batch = source.batch(rng(seed))
        assert batch.target.shape[-1] == 16
        firsts += batch.target[:, 0, 0].tolist()
        befores += batch.series.values[:, 0, -32].tolist()
    assert (min(firsts), max(firsts)) == (180, 199)
    assert max(befores) < 180


def test_what_teaches_and_what_judges_do_not_overlap(make_window, tiny_config, catalogue):
    window = make_window(steps=200)
    count = np.arange(200, dtype=np.float32)[None]
    whole = replace(window, values=count)
    teaching = WindowSource(earlier_parts([whole], 0.3), tiny_config, catalogue)
    judging = WindowSource([whole], tiny_config, catalogue, last_ratio=0.3)
    for seed in range(20):
        taught = teaching.batch(rng(seed))
        assert np.nanmax(taught.target.numpy()) < 140
        assert np.nanmax(taught.series.values.numpy()) < 140
        assert np.nanmin(judging.batch(rng(seed)).target.numpy()) >= 140


def test_a_last_part_without_a_patch_is_refused(make_window, tiny_config, catalogue):
    with pytest.raises(DataError, match="16 of them in its last 5%"):
        WindowSource([make_window(steps=100)], tiny_config, catalogue, last_ratio=0.05)


def test_an_outage_is_tried_around(make_window, tiny_config, catalogue):
    window = make_window(steps=300)
    values = window.values.copy()
    values[:, 20:250] = np.nan
    source = WindowSource(
        [replace(window, values=values)], tiny_config, catalogue, series_per_batch=16
    )
    batch = source.batch(rng())
    assert (~torch.isnan(batch.target)).any(-1).float().mean() > 0.6


def test_synthetic_batches_carry_kinds_limits_and_origin(tiny_config):
    spec = BatchSpec(series=8, max_context_steps=64, max_history_steps=128, max_horizon=32)
    batch = SyntheticSource(tiny_config, spec).batch(rng())
    assert batch.target.shape[-1] % 16 == 0
    assert batch.series.kinds.shape == batch.target.shape[:2]


def test_recorded_windows_bring_what_is_planned_around_their_origin(
    make_window, tiny_config, catalogue
):
    window = make_window()
    hour_ms = window.step_ms
    event = PlannedEvent(window.start_ms + 30 * hour_ms, window.start_ms + 300 * hour_ms)
    known: dict[str, Any] = {"country": "ES", "time_zone": "Europe/Madrid", "events": (event,)}
    count = np.arange(window.steps, dtype=np.float32)[None]  # a sample's value is its position
    source = WindowSource(
        [replace(window, values=count, **known)], tiny_config, catalogue, series_per_batch=4
    )
    seen = np.zeros(planned_width(tiny_config.patch))
    for seed in range(20):
        batch = source.batch(rng(seed))
        patches = batch.series.planned.shape[1]
        first = patches * tiny_config.patch - batch.target.shape[-1]
        for row, origin in zip(batch.series.planned, batch.target[:, 0, 0].tolist(), strict=True):
            start_ms = window.start_ms + (int(origin) - first) * hour_ms
            expected = planned_inputs(start_ms, patches, tiny_config.patch, hour_ms, **known)
            np.testing.assert_array_equal(row.numpy(), expected)
            seen += expected.sum(axis=0)
    assert (seen > 0).all()


def test_synthetic_cells_tell_the_days_and_hours_that_were_drawn(tiny_config):
    spec = BatchSpec(series=16, max_context_steps=64, max_history_steps=128, max_horizon=32)
    patch, seen = tiny_config.patch, np.zeros(planned_width(tiny_config.patch))
    for seed in range(40):
        drawn = sample_batch(rng(seed), spec)
        planned = SyntheticSource(tiny_config, spec).batch(rng(seed)).series.planned.numpy()
        patches = planned.shape[1]
        assert planned.shape[2] == planned_width(patch)
        if not 60_000 <= drawn.step_ms <= DAY_MS:
            assert not planned.any()
            continue
        told = drawn.planned
        for cell, start_ms in enumerate(drawn.start_ms):
            events = told.told_events[cell, -patches * patch :]
            np.testing.assert_array_equal(planned[cell, :, :patch].reshape(-1), events)
            first = drawn.values.shape[-1] - patches * patch
            for index in range(patches * patch):
                day = int(start_ms + (first + index) * drawn.step_ms) // DAY_MS
                column = day - told.first_day[cell]
                where = divmod(index, patch)
                assert planned[cell, where[0], patch + where[1]] == told.told_holidays[cell, column]
                if where[1] in (0, patch - 1):
                    lags = planned[cell, where[0], 2 * patch : input_width(patch)]
                    lags = lags[int(where[1] > 0) :: 2]
                    before = told.told_holidays[cell, [column - 1, column - 7]]
                    assert lags.tolist() == before.tolist()
            seen += planned[cell].sum(axis=0)
    assert (seen > 0).all()


def test_a_synthetic_batch_is_shown_as_it_would_be_forecast(tiny_config):
    spec = BatchSpec(series=4, max_context_steps=64, max_history_steps=128, max_horizon=32)
    for seed in range(10):
        batch = SyntheticSource(tiny_config, spec).batch(rng(seed))
        assert batch.series.planned.shape[:2] == batch.series.calendar.shape[:2]
        assert batch.series.planned.dtype == torch.float32


class _Constant:
    def __init__(self, name: str) -> None:
        self.name = name

    def batch(self, rng: np.random.Generator):  # noqa: ARG002
        return self.name


def test_shares_of_a_mix_are_kept():
    mixed = MixedSource((_Constant("a"), _Constant("b")), (0.25, 0.75))
    drawn = [mixed.batch(rng(seed)) for seed in range(400)]
    assert 60 < drawn.count("a") < 140  # type: ignore[arg-type]
