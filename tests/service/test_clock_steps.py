"""The wall clock is set back by hours, or ahead, while the service runs."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path

import pytest

import service
from service.codecs.arrow_stream import ARROW_MEDIA_TYPE
from service.settings import Settings
from service.timestamps import age_seconds
from tests.service.fakes import NOON_MS, FakeClock, RepeatLast, forecast_request, series, serving

SIX_HOURS_S = 6 * 3600.0
CELL = "ManagedElement=1,NRCellDU=32"
STORED = "/v1/cells/ManagedElement%3D1%2CNRCellDU%3D32/forecast?horizon=2"


@pytest.mark.anyio
async def test_a_stored_cell_is_forecast_and_its_data_are_of_no_negative_age():
    clock = FakeClock()
    async with serving(clock=clock) as client:
        await client.post("/v1/observations", {"series": [series()]})
        before = (await client.get(STORED)).json()
        clock.step_wall(-SIX_HOURS_S)
        after = (await client.get(STORED)).json()
        assert await client.metric("rancast_data_age_seconds") == 0
    assert before["forecasts"][0]["context"].pop("age_seconds") == 4500
    assert after["forecasts"][0]["context"].pop("age_seconds") == 0
    assert after == before


@pytest.mark.anyio
async def test_what_is_observed_after_the_step_is_kept_and_wins():
    clock = FakeClock()
    async with serving(clock=clock) as client:
        await client.post("/v1/observations", {"series": [series(kpis={"A": [1.0, 2.0]})]})
        clock.step_wall(-SIX_HOURS_S)
        later = series(kpis={"A": [1.0, 7.0, 8.0]})
        answer = (await client.post("/v1/observations", {"series": [later]})).json()
        samples = (await client.get(STORED.replace("forecast?horizon=2", "samples"))).json()
    assert answer["rejected"] == []
    assert samples["kpis"]["A"] == [1.0, 7.0, 8.0]


@pytest.mark.anyio
async def test_no_form_of_an_answer_has_a_negative_age():
    clock = FakeClock()
    clock.step_wall(-SIX_HOURS_S)
    rows = {"instances": [series()]}
    tensors = {
        "inputs": [
            {"name": "values", "datatype": "FP32", "shape": [1, 1, 2], "data": [1, 2]},
            {"name": "start_ms", "datatype": "INT64", "shape": [1], "data": [NOON_MS]},
        ]
    }
    one = {
        "type": "univariate_time_series",
        "name": "A",
        "series": [1.0, 2.0],
        "frequency": "hour",
        "start_timestamp": "2026-11-01T12:00:00Z",
    }
    inputs = {"model": "fake", "inputs": [one], "options": {"horizon": 1}}
    async with serving(clock=clock) as client:
        ours = await client.post("/v1/forecast", forecast_request())
        arrow = await client.post("/v1/forecast", forecast_request(), accept=ARROW_MEDIA_TYPE)
        v1 = await client.post("/v1/models/fake:predict", rows)
        v2 = await client.post("/v2/models/fake/infer", tensors)
        timeseries = await client.post("/v1/timeseries/forecast", inputs)
    assert ours.json()["forecasts"][0]["context"]["age_seconds"] == 0
    import pyarrow as pa

    table = pa.ipc.open_stream(arrow.content).read_all()
    assert set(table.column("age_seconds").to_pylist()) == {0.0}
    assert v1.json()["predictions"][0]["context"]["age_seconds"] == 0
    outputs = {output["name"]: output["data"] for output in v2.json()["outputs"]}
    assert outputs["age_seconds"] == [0]
    (content,) = timeseries.json()["outputs"][0]["content"]
    assert content["context"]["age_seconds"] == 0


@pytest.mark.anyio
@pytest.mark.parametrize("step_s", [-SIX_HOURS_S, SIX_HOURS_S])
async def test_a_request_in_work_keeps_its_deadline(step_s):
    clock, model = FakeClock(), RepeatLast()
    async with serving(clock=clock, predictor=model) as client:
        model.forget_warm_up()
        model.gate.clear()
        asked = [
            asyncio.create_task(client.post("/v1/forecast", forecast_request(budget_ms=budget_ms)))
            for budget_ms in (50, 100)
        ]
        assert await asyncio.to_thread(model.entered.acquire, timeout=30)
        while await client.metric("rancast_queue_depth") < 2:
            await asyncio.sleep(0)
        clock.step_wall(step_s)
        clock.advance(0.06)
        assert (await asked[0]).status_code == 504
        model.gate.set()
        assert (await asked[1]).status_code == 200


@pytest.mark.anyio
@pytest.mark.parametrize("step_s", [-SIX_HOURS_S, SIX_HOURS_S])
async def test_a_client_is_neither_locked_out_nor_let_loose(step_s):
    clock = FakeClock()
    settings = Settings(rate_limit_per_second=1, rate_limit_burst=1)
    async with serving(settings, clock=clock) as client:
        assert (await client.get("/v1/model")).status_code == 200
        clock.step_wall(step_s)
        assert (await client.get("/v1/model")).status_code == 429
        clock.advance(1)
        assert (await client.get("/v1/model")).status_code == 200


@pytest.mark.anyio
async def test_what_was_forecast_before_the_step_is_held_against_what_comes_after():
    clock = FakeClock()
    async with serving(clock=clock) as client:
        await client.post("/v1/observations", {"series": [series(kpis={"A": [1.0, 2.0]})]})
        assert (await client.get(STORED)).status_code == 200
        clock.step_wall(-SIX_HOURS_S)
        more = series(start="2026-11-01T10:30:00Z", kpis={"A": [3.0]})
        await client.post("/v1/observations", {"series": [more]})
        report = (await client.get("/v1/accuracy")).json()
    assert report["unscored"]["refused"] == 0
    assert report["models"][0]["accuracy"][0]["total"]["samples"] == 1


def test_an_age_counts_from_the_moment_and_never_below_zero():
    assert age_seconds(1_000, 2_500) == 1.5
    assert age_seconds(2_500, 1_000) == 0


# What is read once to stamp something for a person; no duration or deadline hangs on it.
STAMPS = {"clock.py", "demo.py", "offline/output.py"}
WALL = {("time", "time"), ("time", "time_ns"), ("datetime", "now"), ("datetime", "utcnow")}


def wall_clock_reads(path: Path) -> list[str]:
    """Attributes in a module that read the wall clock."""
    return [
        f"{node.value.id}.{node.attr}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id, node.attr) in WALL
    ]


def test_only_the_clock_reads_the_wall_clock():
    root = Path(service.__file__).parent
    found = {
        path.relative_to(root).as_posix(): reads
        for path in root.rglob("*.py")
        if (reads := wall_clock_reads(path))
    }
    assert found.keys() <= STAMPS, found
    assert "clock.py" in found  # or this test looks in the wrong place
