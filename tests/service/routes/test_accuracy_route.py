import asyncio

import pytest

from service.settings import Settings
from tests.service.fakes import RepeatLast, forecast_request, series, serving

pytestmark = pytest.mark.anyio

PRB = "RRU.PrbTotDl"
USERS = "DRB.MeanActiveUeDl"


async def push(client, start: str, **kpis: list[float | None]) -> None:
    named = {{"prb": PRB, "users": USERS}[name]: values for name, values in kpis.items()}
    answer = await client.post(
        "/v1/observations", {"series": [series(cell="a", start=start, kpis=named)]}
    )
    assert answer.status_code == 200
    assert answer.json()["rejected"] == []


async def ask(client, query: str = "horizon=4"):
    answer = await client.get(f"/v1/cells/a/forecast?{query}")
    assert answer.status_code == 200
    return answer.json()


async def accuracy(client, query: str = ""):
    answer = await client.get(f"/v1/accuracy{query}")
    assert answer.status_code == 200
    return answer.json()


async def test_what_came_is_held_against_what_was_forecast():
    async with serving() as client:
        await push(client, "2026-11-01T10:00:00Z", prb=[10.0, 10.0], users=[3.0, 3.0])
        # The stand-in for the model answers with the last value plus the level.
        await ask(client)
        await push(client, "2026-11-01T10:30:00Z", prb=[10.5, 20.0, 10.6], users=[None, 3.5, 9.0])
        report = await accuracy(client)
        assert report["kept_forecasts"] == 1
        assert report["waiting_values"] == 3
        assert report["unscored"] == {"evicted": 0, "expired": 0, "replaced": 0, "refused": 0}
        (model,) = report["models"]
        assert model["model"] == {"name": "fake", "version": "1.2.3", "digest": "sha256:feed"}
        assert (model["rung"], model["levels"]) == ("full", [0.1, 0.5, 0.9])
        assert model["nominal_coverage"] == 0.8
        assert model["since"] == "2026-11-01T10:45:00Z"
        assert model["until"] == "2026-11-01T11:15:00Z"
        rows = {
            (row["kind"], row["first_step"], row["last_step"]): row for row in model["accuracy"]
        }
        assert {key: row["total"]["samples"] for key, row in rows.items()} == {
            ("gauge", 2, 3): 2,
            ("percent", 1, 1): 1,
            ("percent", 2, 3): 2,
        }
        assert rows["percent", 1, 1]["total"]["coverage"] == 1.0
        assert rows["percent", 2, 3]["total"]["coverage"] == 0.5
        # Twice the pinball losses of 10.5 at 10.1, 10.5 and 10.9, their mean, by the value.
        assert rows["percent", 1, 1]["recent"]["wql"] == pytest.approx(
            2 * (0.1 * 0.4 + 0.1 * 0.4) / 3 / 10.5, abs=1e-6
        )
        labels = {"kpi_kind": "percent", "horizon": "2-3", "model": "fake", "version": "1.2.3"}
        assert await client.metric("rancast_realised_coverage_ratio", **labels) == 0.5
        assert await client.metric("rancast_realised_samples_total", **labels) == 2
        text = (await client.get("/metrics")).text
    assert "rancast_realised_wql{" in text


async def test_sending_observations_again_changes_nothing():
    async with serving() as client:
        await push(client, "2026-11-01T10:00:00Z", prb=[10.0])
        await ask(client)
        await push(client, "2026-11-01T10:15:00Z", prb=[10.5])
        before = await accuracy(client)
        await push(client, "2026-11-01T10:00:00Z", prb=[10.0, 10.5])
        assert await accuracy(client) == before


async def test_observations_that_arrive_while_the_model_works_count():
    model = RepeatLast()
    async with serving(predictor=model) as client:
        await push(client, "2026-11-01T10:00:00Z", prb=[10.0])
        for _ in range(2):  # the warm-up's
            model.entered.acquire(blocking=False)
        model.gate.clear()
        asked = asyncio.create_task(ask(client))
        await asyncio.to_thread(model.entered.acquire)
        await push(client, "2026-11-01T10:15:00Z", prb=[10.5])
        model.gate.set()
        await asked
        report = await accuracy(client)
    assert report["models"][0]["accuracy"][0]["total"]["samples"] == 1


async def test_a_forecast_of_a_history_in_the_request_is_not_kept():
    async with serving() as client:
        await client.post("/v1/forecast", forecast_request())
        assert (await accuracy(client))["kept_forecasts"] == 0


async def test_a_forecast_that_is_not_answered_is_not_kept():
    model = RepeatLast()
    async with serving(predictor=model) as client:
        await push(client, "2026-11-01T10:00:00Z", prb=[10.0])
        model.on_call = lambda: client.clock.advance(1)
        assert (await client.get("/v1/cells/a/forecast?horizon=4")).status_code == 504
        assert (await accuracy(client))["kept_forecasts"] == 0


async def test_levels_have_accounts_of_their_own():
    async with serving() as client:
        await push(client, "2026-11-01T10:00:00Z", prb=[10.0])
        await ask(client, "horizon=1&quantiles=0.5")
        await push(client, "2026-11-01T10:15:00Z", prb=[10.0])
        await ask(client, "horizon=1&quantiles=0.25,0.75")
        await push(client, "2026-11-01T10:30:00Z", prb=[10.5])
        models = (await accuracy(client))["models"]
    assert [(m["levels"], m["nominal_coverage"]) for m in models] == [
        ([0.25, 0.75], 0.5),
        ([0.5], None),
    ]
    single = models[1]["accuracy"][0]["total"]
    assert (single["coverage"], single["relative_width"]) == (None, None)
    assert single["wql"] is not None


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?model=fake", True),
        ("?model=other", False),
        ("?version=1.2.3&kind=percent", True),
        ("?version=9", False),
        ("?kind=delay", False),
    ],
)
async def test_the_answer_can_be_filtered(query, found):
    async with serving() as client:
        await push(client, "2026-11-01T10:00:00Z", prb=[10.0])
        await ask(client)
        await push(client, "2026-11-01T10:15:00Z", prb=[10.5])
        assert bool((await accuracy(client, query))["models"]) == found


@pytest.mark.parametrize("query", ["kind=colour", "cell=a"])
async def test_a_filter_that_cannot_be_is_refused(query):
    async with serving() as client:
        answer = await client.get(f"/v1/accuracy?{query}")
    assert answer.status_code == 422
    assert answer.json()["path"] == f"query:{query.partition('=')[0]}"


async def test_without_memory_nothing_is_kept_and_everything_is_answered():
    async with serving(Settings(accuracy_bytes=0)) as client:
        await push(client, "2026-11-01T10:00:00Z", prb=[10.0])
        await ask(client)
        report = await accuracy(client)
    assert (report["kept_forecasts"], report["models"]) == (0, [])


async def test_the_start_says_what_the_ledger_may_cost(caplog):
    caplog.set_level("INFO")
    async with serving(Settings(accuracy_bytes=1 << 20)):
        pass
    (opened,) = [record for record in caplog.records if record.msg == "accuracy_open"]
    fields = vars(opened)["rancast_fields"]
    assert fields["most_forecasts"] > 0
    assert fields["most_bytes"] > 1 << 19
