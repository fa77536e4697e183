"""Calibrated quantiles cover what they say, ascend, keep limits and scale, and travel whole."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from kpi.catalogue import KpiKind
from model.calibration import MOST_SHIFT, Calibration, scores, step_buckets
from model.checkpoint import load_checkpoint, save_checkpoint
from model.config import TRAINED_LEVELS
from model.errors import CheckpointError, HorizonError, ModelError
from model.transformer import TransformerPredictor

LEVELS = (0.1, 0.5, 0.9)
GAUGE, PERCENT = KpiKind.GAUGE, KpiKind.PERCENT
NOWHERE = torch.tensor([[math.inf]])

shift_rows = arrays.arrays(
    np.float64, (2, 3), elements=st.floats(-MOST_SHIFT, MOST_SHIFT, allow_nan=False)
).map(lambda rows: tuple(map(tuple, rows.tolist())))
quantiles = arrays.arrays(
    np.float32, (1, 1, 5, 3), elements=st.floats(-8, 8, width=32, allow_nan=False)
).map(torch.from_numpy)


def calibration(rows=((0.0,) * 3, (0.0,) * 3), **changes):
    """Two buckets (step 1, steps from 2) for gauges; other kinds stay as they are."""
    return Calibration(
        **{
            "levels": LEVELS,
            "first_steps": (1, 2),
            "shifts": {"gauge": rows},
            "other": ((0.0,) * 3, (0.0,) * 3),
            "counts": {"gauge": (7, 9)},
            "provenance": {"data": "sha256:0"},
            **changes,
        }
    )


def apply(found, scaled, kind=GAUGE, lower=-math.inf, upper=math.inf):
    shape = scaled.shape[:2]
    return found.apply(
        scaled,
        torch.full(shape, kind.number),
        torch.full(shape, lower),
        torch.full(shape, upper),
    )


@given(quantiles)
def test_zero_shifts_sort_and_change_nothing_else(scaled):
    torch.testing.assert_close(apply(calibration(), scaled), scaled.sort(-1).values)


@given(shift_rows, quantiles)
def test_quantiles_ascend_and_are_those_of_a_forecast_within_the_limits(rows, scaled):
    found = apply(calibration(rows), scaled, lower=-1.5, upper=2.0)
    assert (found.diff(dim=-1) >= 0).all()
    same = apply(calibration(rows), scaled.clamp(-1.5, 2.0), lower=-1.5, upper=2.0)
    torch.testing.assert_close(found.clamp(-1.5, 2.0), same.clamp(-1.5, 2.0))


def test_what_lay_beyond_a_limit_and_is_not_moved_off_it_stays_beyond():
    scaled = torch.tensor([-3.0, -2.0, 4.0]).expand(1, 1, 1, 3)  # the width within them is 3.5
    rows = ((-0.1, 0.0, 0.2), (0.0,) * 3)
    found = apply(calibration(rows), scaled, lower=-1.5, upper=2.0)
    torch.testing.assert_close(found, torch.tensor([-3.35, -2.0, 4.7]).expand(1, 1, 1, 3))


@given(shift_rows, quantiles, st.floats(0.01, 100), st.floats(-10, 10))
def test_scaling_and_moving_a_forecast_scales_and_moves_the_calibrated_one(rows, scaled, by, to):
    found = calibration(rows)
    exact = scaled.double()
    torch.testing.assert_close(apply(found, exact * by + to), apply(found, exact) * by + to)


@given(shift_rows, st.floats(-8, 8))
def test_a_forecast_without_width_stays_as_it_is(rows, value):
    scaled = torch.full((1, 1, 4, 3), value)
    torch.testing.assert_close(apply(calibration(rows), scaled), scaled)


def test_a_shift_is_in_widths_of_the_forecast_and_of_its_own_bucket():
    scaled = torch.tensor([0.0, 1.0, 4.0]).expand(1, 1, 3, 3)  # width 4
    rows = ((-0.5, 0.25, 0.5), (0.0, 0.0, 1.0))
    found = apply(calibration(rows), scaled)
    assert found[0, 0].tolist() == [[-2, 2, 6], [0, 1, 8], [0, 1, 8]]


def test_kinds_that_were_not_seen_get_the_shifts_of_the_others():
    scaled = torch.tensor([0.0, 1.0, 4.0]).expand(1, 1, 1, 3)
    other = ((0.0, 0.0, 1.0), (0.0,) * 3)
    found = calibration(((-1.0, 0.0, 0.0), (0.0,) * 3), other=other)
    assert apply(found, scaled, GAUGE)[0, 0, 0].tolist() == [-4, 1, 4]
    assert apply(found, scaled, PERCENT)[0, 0, 0].tolist() == [0, 1, 8]


def test_targets_on_a_quantile_at_the_limit_ask_for_no_shift():
    scaled = torch.tensor([[[[-3.0, -1.0, 2.0]]]])
    found = scores(scaled, torch.zeros(1, 1, 1), LEVELS, torch.zeros(1, 1), NOWHERE)
    assert found.flatten().tolist() == [0, 0, -1]


def test_a_missing_target_has_no_score():
    scaled = torch.tensor([[[[-3.0, -1.0, 2.0]]]])
    target = torch.full((1, 1, 1), math.nan)
    assert scores(scaled, target, LEVELS, -NOWHERE, NOWHERE).isnan().all()


def test_a_target_off_a_forecast_without_width_scores_far_but_finite():
    scaled = torch.zeros(1, 1, 1, 3)
    found = scores(scaled, torch.ones(1, 1, 1), LEVELS, -NOWHERE, NOWHERE)
    assert (found > MOST_SHIFT).all()
    assert found.isfinite().all()


@pytest.mark.parametrize(
    ("horizon", "first_steps"), [(1, (1,)), (3, (1, 2)), (24, (1, 2, 4, 8, 16)), (192, None)]
)
def test_buckets_double_up_to_the_horizon(horizon, first_steps):
    found = step_buckets(horizon)
    assert found == (first_steps or (1, 2, 4, 8, 16, 32, 64, 128))


@given(shift_rows)
def test_what_was_written_comes_back(rows):
    found = calibration(rows)
    assert Calibration.from_dict(json.loads(json.dumps(found.to_dict()))) == found


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("levels", [0.1, 0.5]),
        ("levels", [0.9, 0.5, 0.1]),
        ("levels", ["0.1", 0.5, 0.9]),
        ("levels", None),
        ("first_steps", [2, 3]),
        ("first_steps", [1, 1]),
        ("first_steps", [1, 1.5]),
        ("shifts", {"moon": [[0, 0, 0], [0, 0, 0]]}),
        ("shifts", {"gauge": [[0, 0, 0]]}),
        ("shifts", {"gauge": [[0, 0], [0, 0]]}),
        ("shifts", {"gauge": [[0, 0, math.nan], [0, 0, 0]]}),
        ("shifts", {"gauge": [[0, 0, math.inf], [0, 0, 0]]}),
        ("shifts", {"gauge": [[0, 0, 99], [0, 0, 0]]}),
        ("shifts", {"gauge": [[0, 0, True], [0, 0, 0]]}),
        ("shifts", [1, 2]),
        ("other", "zeros"),
        ("counts", {"gauge": [1, -1]}),
        ("counts", {"gauge": [1]}),
        ("provenance", 3),
    ],
)
def test_garbage_is_refused(name, value):
    with pytest.raises(CheckpointError, match="calibrate it again"):
        Calibration.from_dict({**calibration().to_dict(), name: value})


@pytest.mark.parametrize("name", ["levels", "shifts", "other", "counts", "provenance", "method"])
def test_a_missing_field_is_refused(name):
    fields = calibration().to_dict()
    del fields[name]
    with pytest.raises(CheckpointError, match=name):
        Calibration.from_dict(fields)


def test_kinds_that_a_new_calibration_did_not_see_are_kept():
    wide = ((-1.0, 0.0, 1.0), (-1.0, 0.0, 1.0))
    earlier = calibration(
        shifts={"gauge": wide, "percent": wide}, counts={"percent": (3, 3)}, other=wide
    )
    found = calibration(provenance={"data": "sha256:1"}).over(earlier)
    assert found.shifts == {"gauge": ((0.0,) * 3, (0.0,) * 3), "percent": wide}
    assert found.other == wide
    assert found.counts == {"gauge": (7, 9), "percent": (3, 3)}
    assert found.provenance == {
        "data": "sha256:1",
        "kept": {"percent": {"data": "sha256:0"}, "other": {"data": "sha256:0"}},
    }


def test_the_story_of_what_is_kept_does_not_grow_with_every_calibration():
    rows = ((0.0,) * 3, (0.0,) * 3)
    found = calibration(shifts={"delay": rows}, counts={}, provenance={"data": "first"})
    for week in range(5):
        found = calibration(provenance={"data": f"gauges {week}"}).over(found)
        percent = calibration(
            shifts={"percent": rows}, counts={}, provenance={"data": f"percents {week}"}
        )
        found = percent.over(found)
    assert set(found.shifts) == {"delay", "gauge", "percent"}
    assert found.provenance == {
        "data": "percents 4",
        "kept": {
            "delay": {"data": "first"},
            "gauge": {"data": "gauges 4"},
            "other": {"data": "first"},
        },
    }


@pytest.mark.parametrize("changes", [{"levels": (0.1, 0.5, 0.8)}, {"first_steps": (1, 4)}])
def test_a_calibration_of_other_levels_or_buckets_is_not_kept(changes):
    found = calibration()
    assert found.over(calibration(**changes)) == found
    assert found.over(None) == found


def wide_calibration(first_steps=(1, 4)):
    """Every kind twice as wide."""
    rows = tuple(tuple((level - 0.5) * 1.25 for level in TRAINED_LEVELS) for _ in first_steps)
    still = tuple((0.0,) * len(TRAINED_LEVELS) for _ in first_steps)
    shifts = {str(kind): rows for kind in KpiKind}
    return Calibration(TRAINED_LEVELS, first_steps, shifts, still)


def test_a_checkpoint_carries_its_calibration(tiny_checkpoint, tmp_path):
    path = tmp_path / "tiny.safetensors"
    found = wide_calibration()
    save_checkpoint(replace(tiny_checkpoint, calibration=found), path)
    assert load_checkpoint(path).calibration == found


def test_a_checkpoint_with_a_calibration_of_other_levels_is_refused(tiny_checkpoint):
    with pytest.raises(CheckpointError, match="levels"):
        replace(tiny_checkpoint, calibration=calibration())


def test_a_predictor_uses_the_calibration_unless_told_not_to(
    tiny_checkpoint, catalogue, make_window
):
    checkpoint = replace(tiny_checkpoint, calibration=wide_calibration())
    windows = [make_window()]
    (plain,) = TransformerPredictor(tiny_checkpoint, catalogue).predict(windows, 8, LEVELS)
    (wide,) = TransformerPredictor(checkpoint, catalogue).predict(windows, 8, LEVELS)
    (off,) = TransformerPredictor(checkpoint, catalogue, calibrated=False).predict(
        windows, 8, LEVELS
    )
    np.testing.assert_array_equal(off.values, plain.values)
    plain_width = plain.values[..., -1] - plain.values[..., 0]
    assert (wide.values[..., -1] - wide.values[..., 0] > 1.2 * plain_width).all()


def test_calibrated_forecasts_keep_limits_and_do_not_depend_on_neighbours(
    tiny_checkpoint, catalogue, make_window
):
    checkpoint = replace(tiny_checkpoint, calibration=wide_calibration())
    predictor = TransformerPredictor(checkpoint, catalogue)
    windows = [make_window(seed, kpis=("Percent", "Volume")) for seed in range(3)]
    together = predictor.predict(windows, 20, TRAINED_LEVELS)
    for window, forecast in zip(windows, together, strict=True):
        (alone,) = predictor.predict([window], 20, TRAINED_LEVELS)
        np.testing.assert_allclose(alone.values, forecast.values, rtol=1e-5, atol=1e-4)
        assert (np.diff(forecast.values, axis=-1) >= 0).all()
        assert forecast.values.min() >= 0
        assert forecast.values[0].max() <= 100


def test_zeros_at_the_limit_stay_exact_zeros(tiny_checkpoint, catalogue, make_window):
    """Rounding in model space must not lift them, or a silent cell lay below its quantiles."""
    still = tuple((0.0,) * len(TRAINED_LEVELS) for _ in (1, 4))
    none = Calibration(TRAINED_LEVELS, (1, 4), {}, still)
    window = make_window(kpis=("Volume",))
    silent = replace(window, values=np.where(window.values > 60, window.values, 0))
    (plain,) = TransformerPredictor(tiny_checkpoint, catalogue).predict([silent], 40, LEVELS)
    (found,) = TransformerPredictor(replace(tiny_checkpoint, calibration=none), catalogue).predict(
        [silent], 40, LEVELS
    )
    assert (plain.values == 0).any()
    np.testing.assert_array_equal(found.values == 0, plain.values == 0)


def test_a_calibrated_forecast_scales_with_its_series(tiny_checkpoint, catalogue, make_window):
    predictor = TransformerPredictor(
        replace(tiny_checkpoint, calibration=wide_calibration()), catalogue
    )
    window = make_window()
    larger = replace(window, values=window.values * 1000)
    (one,) = predictor.predict([window], 12, LEVELS)
    (other,) = predictor.predict([larger], 12, LEVELS)
    np.testing.assert_allclose(other.values, one.values * 1000, rtol=1e-3, atol=1)


def test_conformity_is_zero_where_the_target_is_the_median(predictor, make_window):
    windows = [make_window(0), make_window(1)]
    (median, _) = forecasts = predictor.predict(windows, 5, (0.5,))
    targets = [forecast.values[..., 0] for forecast in forecasts]
    targets[1] = np.full_like(targets[1], np.nan)
    found, missing = predictor.conformity(windows, targets)
    place = TRAINED_LEVELS.index(0.5)
    assert found.shape == (*median.values.shape[:2], len(TRAINED_LEVELS))
    np.testing.assert_allclose(found[..., place], 0, atol=1e-3)
    assert (found[..., 0] >= 0).all()
    assert (found[..., -1] <= 0).all()
    assert np.isnan(missing).all()


def test_conformity_says_nothing_of_a_kpi_that_the_baseline_answers(predictor, make_window):
    window = make_window(kpis=("Free", "Volume"))
    values = window.values.copy()
    values[1, :-1] = np.nan
    (found,) = predictor.conformity(
        [replace(window, values=values)], [np.ones((2, 4), dtype=np.float32)]
    )
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1]).all()


def test_conformity_wants_one_horizon_that_the_model_has(predictor, make_window):
    targets = [np.zeros((1, 4), np.float32), np.zeros((1, 5), np.float32)]
    with pytest.raises(HorizonError, match="one horizon"):
        predictor.conformity([make_window(0), make_window(1)], targets)
    with pytest.raises(HorizonError, match="horizon of 1"):
        predictor.conformity([make_window(0)], [np.zeros((1, 4_000), np.float32)])


def test_shifts_beyond_reason_are_refused():
    with pytest.raises(ModelError, match="at most"):
        calibration(((0.0, 0.0, 2 * MOST_SHIFT), (0.0,) * 3))
