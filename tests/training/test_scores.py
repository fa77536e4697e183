"""The sample of scores is bounded and even, and few forecasts lean on more general ones."""

from __future__ import annotations

import numpy as np
import pytest

from kpi.catalogue import KpiKind
from training.errors import DataError
from training.scores import FEWEST_FORECASTS, GROUPS, ROWS, ScoreSample

LEVELS = (0.1, 0.5, 0.9)
GAUGE, PERCENT, DELAY = KpiKind.GAUGE.number, KpiKind.PERCENT.number, KpiKind.DELAY.number


def add(sample, rng, *, windows=48, kinds=(GAUGE,), horizon=4, bias=0.0):
    """Scores of uniform targets around forecasts whose quantiles are -0.4, 0 and 0.4, plus bias."""
    target = rng.uniform(-0.5, 0.5, (windows, len(kinds), horizon, 1)) + bias
    scores = (target - np.array([-0.4, 0.0, 0.4])).astype(np.float32)
    sample.add(scores, np.tile(kinds, (windows, 1)), np.arange(windows) % GROUPS)


def read(seed=0, batches=20, **options):
    sample, rng = ScoreSample(LEVELS, 7, 0), np.random.default_rng(seed)
    for _ in range(batches):
        add(sample, rng, **options)
    return sample.calibration({"data": "sha256:0"})


def test_right_forecasts_get_no_shifts_to_speak_of():
    found = read()
    np.testing.assert_allclose(found.shifts["gauge"], 0, atol=0.05)
    assert found.levels == LEVELS
    assert found.first_steps == (1, 2, 4)


def test_a_bias_becomes_the_shift_of_every_level():
    found = read(bias=0.3, batches=40)
    np.testing.assert_allclose(found.shifts["gauge"], 0.3, atol=0.05)


def test_targets_are_counted_by_kind_and_bucket():
    found = read(batches=2, windows=30, kinds=(GAUGE, PERCENT))
    assert found.counts == {"gauge": (60, 120, 60), "percent": (60, 120, 60)}
    assert found.provenance == {"data": "sha256:0", "forecasts": 120, "targets": 480}


def test_a_bucket_without_forecasts_has_the_shifts_of_its_kind():
    sample, rng = ScoreSample(LEVELS, 7, 0), np.random.default_rng(0)
    for _ in range(40):
        add(sample, rng, horizon=1, bias=0.3)
    found = sample.calibration({})
    assert found.shifts["gauge"][1] == found.shifts["gauge"][2]
    np.testing.assert_allclose(found.shifts["gauge"][2], 0.3, atol=0.05)


def test_a_kind_with_few_forecasts_has_the_shifts_of_all():
    sample, rng = ScoreSample(LEVELS, 7, 0), np.random.default_rng(0)
    for _ in range(40):
        add(sample, rng, bias=0.3)
    add(sample, rng, windows=FEWEST_FORECASTS - 1, kinds=(PERCENT,), bias=-2.0)
    found = sample.calibration({})
    np.testing.assert_allclose(found.shifts["percent"], 0.3, atol=0.05)
    np.testing.assert_allclose(found.other, 0.3, atol=0.05)
    assert "delay" not in found.shifts


def test_a_kind_with_more_forecasts_leans_less_on_all():
    sample, rng = ScoreSample(LEVELS, 7, 0), np.random.default_rng(0)
    for _ in range(40):
        add(sample, rng)
    add(sample, rng, kinds=(PERCENT,), windows=50, bias=1.0)
    few = np.array(sample.calibration({}).shifts["percent"])
    for _ in range(40):
        add(sample, rng, kinds=(PERCENT,), bias=1.0)
    many = np.array(sample.calibration({}).shifts["percent"])
    assert (few[:, 1] < many[:, 1]).all()
    np.testing.assert_allclose(many, 1.0, atol=0.1)


def test_memory_does_not_grow_with_the_data():
    sample, rng = ScoreSample(LEVELS, 7, 0), np.random.default_rng(0)
    for _ in range(8):
        add(sample, rng, windows=1_000)
    assert max(len(rows) for rows in sample._kept.values()) == ROWS
    assert sample.targets == 32_000


def test_late_batches_are_kept_as_often_as_early_ones():
    sample, rng = ScoreSample(LEVELS, 1, 0), np.random.default_rng(0)
    for number in range(10):
        add(sample, rng, windows=2_000, horizon=1, bias=10.0 * number)
    kept = sample._kept[GAUGE, 0][:, 3]  # the median's scores
    shares = np.bincount(np.round(kept / 10).astype(int), minlength=10) / len(kept)
    np.testing.assert_allclose(shares, 0.1, atol=0.03)


def test_the_same_scores_give_the_same_shifts():
    assert read() == read()


def test_missing_targets_are_left_out():
    sample = ScoreSample(LEVELS, 1, 0)
    sample.add(
        np.full((30, 1, 1, 3), np.nan, np.float32), np.full((30, 1), DELAY), np.zeros(30, np.int64)
    )
    assert sample.targets == sample.forecasts == 0


def test_too_few_forecasts_are_refused():
    with pytest.raises(
        DataError, match="at least 20 forecasts with a value to calibrate on, got 9"
    ):
        read(batches=1, windows=9)
