"""Scaling is invertible, survives constants and ignores what is missing."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from model import scaling

FINITE = st.floats(-1e6, 1e6, width=32)


@given(hnp.arrays(np.float32, (1, 1, 40), elements=FINITE))
def test_unscale_undoes_scale(values):
    context = torch.from_numpy(values)
    stats = scaling.measure(context)
    back = scaling.unscale(scaling.scale(context, stats), stats)
    tolerance = 1e-4 * (stats.spread + stats.mean.abs()).item()
    torch.testing.assert_close(back, context.double(), rtol=1e-4, atol=tolerance)


def test_missing_samples_do_not_count():
    values = torch.tensor([[[1.0, torch.nan, 3.0, torch.nan]]])
    stats = scaling.measure(values)
    assert stats.mean.item() == 2.0
    assert stats.spread.item() == 1.0
    assert scaling.scale(values, stats).isnan().tolist() == [[[False, True, False, True]]]


def test_a_constant_series_has_a_spread_of_one_percent():
    stats = scaling.measure(torch.full((1, 1, 8), 50.0))
    assert stats.spread.item() == 0.5


def test_an_all_zero_series_has_no_spread_and_comes_back_as_zero_whatever_is_said():
    stats = scaling.measure(torch.zeros(1, 1, 8))
    assert stats.spread.item() == 0
    said = torch.tensor([[[-1e9, -3.0, 0.0, 0.7, 1e9]]])
    assert scaling.unscale(said, stats).tolist() == [[[0.0] * 5]]


def test_what_follows_an_all_zero_series_is_scaled_by_one():
    stats = scaling.measure(torch.tensor([[[0.0, torch.nan, 0.0]]]))
    coming = torch.tensor([[[0.0, 2.0, torch.nan]]])
    expected = torch.asinh(coming)
    torch.testing.assert_close(scaling.scale(coming, stats), expected, equal_nan=True)


@given(factor=st.floats(1e-30, 1e30))
def test_a_series_has_no_size_below_which_it_is_nothing(factor):
    values = torch.tensor([[[1.0, 3.0, 2.0, 7.0]]])
    one, other = values.double(), values.double() * factor
    expected = scaling.scale(one, scaling.measure(one))
    torch.testing.assert_close(scaling.scale(other, scaling.measure(other)), expected)


def test_a_series_without_samples_gets_neutral_statistics():
    stats = scaling.measure(torch.full((1, 1, 8), torch.nan))
    assert (stats.mean.item(), stats.spread.item()) == (0.0, 1.0)


def test_large_levels_keep_their_precision():
    values = torch.tensor([[[1e8, 1e8 + 64, 1e8 + 128]]])
    assert (
        scaling.scale(
            values,
            scaling.ScaleStats(torch.tensor([[[1e8]]]).double(), torch.tensor([[[64.0]]]).double()),
        ).tolist()[0][0][1]
        == torch.asinh(torch.tensor(1.0)).item()
    )


def test_an_extreme_output_does_not_overflow():
    stats = scaling.measure(torch.tensor([[[0.0, 1.0]]]))
    assert scaling.unscale(torch.tensor([[[[1e9]]]]), stats).isfinite().all()


def test_series_of_a_batch_do_not_mix():
    one, two = torch.rand(1, 2, 30), 1e5 * torch.rand(1, 2, 30)
    together = scaling.measure(torch.cat([one, two]))
    torch.testing.assert_close(together.mean[:1], scaling.measure(one).mean)
    torch.testing.assert_close(together.spread[1:], scaling.measure(two).spread)
