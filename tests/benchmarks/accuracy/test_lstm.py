"""The LSTM is of the forecaster's size and takes its place."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks.accuracy.lstm import LstmCheckpoint, LstmForecaster, load_lstm
from kpi.catalogue import load_catalogue
from kpi.window import KpiWindow
from model.checkpoint import save_checkpoint
from model.config import PRESETS
from model.forecaster import Forecaster
from model.transformer import TransformerPredictor


@pytest.fixture
def trained(tiny) -> LstmCheckpoint:
    torch.manual_seed(0)
    forecaster = LstmForecaster(tiny)
    torch.nn.init.normal_(forecaster.head.out.weight, std=0.1)
    return LstmCheckpoint("lstm", "1", tiny, forecaster.state_dict(), "1", {"steps": 3})


def window(values: np.ndarray) -> KpiWindow:
    names = ("RRU.PrbTotDl", "DRB.MeanActiveUeDl")[: len(values)]
    return KpiWindow("A", names, 0, 3_600_000, values.astype(np.float32))


def drawn(kpis: int, steps: int = 48) -> np.ndarray:
    return np.random.default_rng(kpis).uniform(10, 50, (kpis, steps))


@pytest.mark.parametrize("preset", ["nano", "small", "base"])
def test_it_has_as_many_weights_as_the_forecaster_within_five_percent(preset):
    ours = Forecaster(PRESETS[preset]).parameter_count()
    theirs = LstmForecaster(PRESETS[preset]).parameter_count()
    assert theirs == pytest.approx(ours, rel=0.05)


def test_it_forecasts_as_the_forecaster_does(trained):
    predictor = TransformerPredictor(trained, load_catalogue())
    (forecast,) = predictor.predict([window(drawn(2))], 10, (0.1, 0.5, 0.9))
    assert forecast.values.shape == (2, 10, 3)
    assert np.isfinite(forecast.values).all()


def test_both_ends_of_the_context_reach_the_forecast(trained):
    predictor = TransformerPredictor(trained, load_catalogue())
    values = drawn(1)
    first, last = values.copy(), values.copy()
    first[0, 0], last[0, -1] = 90, 90
    plain, early, late = (
        f.values for f in predictor.predict([window(v) for v in (values, first, last)], 8, (0.5,))
    )
    assert not np.allclose(plain, early)
    assert not np.allclose(plain, late)


def test_a_kpi_hears_of_the_others_whatever_their_order(trained):
    predictor = TransformerPredictor(trained, load_catalogue())
    values = drawn(2)
    other = values.copy()
    other[1] = 100 - 2 * other[1]
    one, two = (f.values[0] for f in predictor.predict([window(values), window(other)], 8, (0.5,)))
    assert not np.allclose(one, two)
    turned = KpiWindow("A", window(values).kpis[::-1], 0, 3_600_000, window(values).values[::-1])
    (same,) = predictor.predict([turned], 8, (0.5,))
    np.testing.assert_allclose(same.values[1], one, rtol=1e-4)


def test_it_is_read_as_it_was_written(trained, tmp_path):
    path = tmp_path / "lstm.safetensors"
    digest = save_checkpoint(trained, path)
    again = load_lstm(path)
    assert again.digest == digest
    assert (again.name, again.config, again.training) == ("lstm", trained.config, {"steps": 3})
    first, second = (
        TransformerPredictor(each, load_catalogue()).predict([window(drawn(1))], 8, (0.5,))
        for each in (trained, again)
    )
    np.testing.assert_array_equal(first[0].values, second[0].values)
