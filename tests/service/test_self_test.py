from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from kpi.window import KpiWindow
from model.checkpoint import Checkpoint, save_checkpoint
from model.config import ForecasterConfig
from model.forecaster import Forecaster
from model.predictor import Forecast, Rung
from service.engine import Ladder, Step
from service.engine.usable import is_usable
from service.errors import StartupError
from service.loading import load_model, warm_up_windows
from service.self_test import UnusableModelError, check_forecasts
from service.settings import Settings
from tests.service.fakes import RepeatLast, forecast_request, series, serving, small_catalogue

WINDOWS = warm_up_windows(16)


class Changed(RepeatLast):
    """Repeats the last value, and says something else of cells whose name begins with `bad`."""

    def __init__(self, change, cells="bad"):
        super().__init__()
        self.change = change
        self.cells = cells

    def predict(self, windows, horizon, levels):
        return [
            replace(one, values=self.change(one.values)) if one.cell.startswith(self.cells) else one
            for one in super().predict(windows, horizon, levels)
        ]


def with_hole(number):
    def change(values):
        changed = values.copy()
        changed[0, -1, 0] = number
        return changed

    return change


def ladder(change):
    steps = (
        Step(Rung.FULL, RepeatLast()),
        Step(Rung.SHORT, Changed(change, cells="warm-up")),
    )
    return Ladder(steps)


def test_a_sound_model_passes():
    check_forecasts(ladder(lambda values: values), WINDOWS)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (with_hole(np.nan), "1 of 144 quantiles that are no finite numbers"),
        (with_hole(-np.inf), "no finite numbers"),
        (lambda values: values[:, :-1], r"shape \(1, 47, 3\), expected \(1, 48, 3\)"),
        (lambda values: values[..., ::-1], "fall where their levels rise"),
        (lambda values: values[9], "IndexError"),
    ],
)
def test_a_rung_that_cannot_serve_is_named_with_what_it_does(change, words):
    with pytest.raises(UnusableModelError, match=words) as caught:
        check_forecasts(ladder(change), WINDOWS)
    assert "fake 1.2.3 (sha256:feed)" in str(caught.value)
    assert "rung short" in str(caught.value)


def test_forecasts_that_are_missing_are_seen():
    class Silent(RepeatLast):
        def predict(self, windows, horizon, levels):
            return super().predict(windows[1:], horizon, levels)

    with pytest.raises(UnusableModelError, match="gives 1 forecasts where 2 were expected"):
        check_forecasts(Ladder((Step(Rung.FULL, Silent()),)), WINDOWS)


def forecast_of(values, *, context_steps=None, number=np.nan) -> tuple[Forecast, KpiWindow]:
    """A forecast that says `number` of the second of two KPIs, whose samples are `values`."""
    window = KpiWindow("c", ("A", "B"), 0, 1000, np.array([[1, 2, 3], values], dtype=np.float32))
    (forecast,) = RepeatLast().predict([window], 2, [0.5])
    forecast.values[1] = number
    if context_steps is not None:
        start_ms = window.end_ms - 1000 * context_steps
        forecast = replace(forecast, context=replace(forecast.context, start_ms=start_ms))
    return forecast, window


NOTHING = [np.nan] * 3


def test_only_of_what_nothing_is_known_nothing_can_be_said():
    assert is_usable(*forecast_of(NOTHING))
    assert not is_usable(*forecast_of([np.nan, np.nan, 1]))
    assert not is_usable(*forecast_of([1, np.nan, np.nan], number=np.inf))
    assert is_usable(*forecast_of([1, np.nan, np.nan], number=5))


def test_what_lies_before_the_context_is_not_known():
    assert is_usable(*forecast_of([1, np.nan, np.nan], context_steps=2))
    assert not is_usable(*forecast_of([1, np.nan, np.nan], context_steps=3))
    assert is_usable(*forecast_of([1, 2, 3], context_steps=0))


def overflowing(path: Path) -> Path:
    """A checkpoint of finite weights, some of them so large that what they make is no number."""
    torch.manual_seed(0)
    config = ForecasterConfig(
        width=32, layers=2, heads=2, feedforward=48, context_patches=8, horizon_patches=3
    )
    weights = {
        name: tensor * 1e37 if tensor.ndim > 1 else tensor
        for name, tensor in Forecaster(config).state_dict().items()
    }
    save_checkpoint(Checkpoint("wild", "1", config, weights, "test"), path)
    return path


def test_a_checkpoint_that_makes_no_numbers_is_not_loaded(tmp_path, monkeypatch):
    monkeypatch.setenv("RANCAST_CACHE_DIR", str(tmp_path))
    path = overflowing(tmp_path / "wild.safetensors")
    with pytest.raises(StartupError, match=r"wild 1 .* cannot serve: .* no finite numbers"):
        load_model(path, Settings(compiled="off"), small_catalogue())


@pytest.mark.anyio
async def test_a_forecast_that_is_no_number_fails_its_request_and_not_its_neighbours():
    model = Changed(with_hole(np.nan))
    sound, bad = (forecast_request(series=[series(cell=name)]) for name in ("good", "bad"))
    async with serving(Settings(profile="non-rt"), predictor=model) as client:
        model.forget_warm_up()
        model.gate.clear()
        holder = asyncio.create_task(client.post("/v1/forecast", sound))
        assert await asyncio.to_thread(model.entered.acquire, timeout=30)
        waiting = [asyncio.create_task(client.post("/v1/forecast", one)) for one in (bad, sound)]
        while await client.metric("rancast_queue_depth") < 3:
            await asyncio.sleep(0)
        model.gate.set()
        refused, answered = await asyncio.gather(*waiting)
        assert (await holder).status_code == 200
    assert ["bad", "good"] in [cells for cells, *_ in model.calls]  # one call for both
    assert answered.status_code == 200
    assert refused.status_code == 500
    assert refused.json()["type"] == "urn:rancast:problem:inference"


@pytest.mark.anyio
async def test_of_a_kpi_that_was_never_seen_the_answer_is_null():
    async with serving() as client:
        body = forecast_request(series=[series(kpis={"Never.Seen": [None, None]})])
        answer = await client.post("/v1/forecast", body)
    assert answer.json()["forecasts"][0]["kpis"]["Never.Seen"]["0.5"] == [None, None]
