from urllib.parse import quote

import pytest

from service.settings import Settings
from tests.service.fakes import RepeatLast, series, serving

pytestmark = pytest.mark.anyio

ODD = "Net=1/Cell,a=b ü%2F?#/forecast"


async def fill(client, *many):
    answer = await client.post("/v1/observations", {"series": list(many)})
    assert answer.json()["rejected"] == []


def at(cell, rest=""):
    return f"/v1/cells/{quote(cell, safe='')}{rest}"


async def test_cells_are_listed_with_their_kpis_and_span():
    async with serving() as client:
        await fill(client, series(cell="a"))
        answer = await client.get("/v1/cells")
    assert answer.json() == {
        "cells": [
            {
                "cell": "a",
                "kpis": ["DRB.MeanActiveUeDl", "RRU.PrbTotDl"],
                "step_seconds": 900,
                "first": "2026-11-01T10:00:00Z",
                "last": "2026-11-01T10:45:00Z",
            }
        ],
        "next": None,
    }


async def test_whole_seconds_are_written_without_a_fraction():
    async with serving() as client:
        await fill(client, series(cell="a"), series(cell="a", step_seconds=1.5))
        text = (await client.get("/v1/cells/a")).text
    assert '"step_seconds":900,' in text
    assert '"step_seconds":1.5,' in text


async def test_an_empty_store_has_an_empty_list():
    async with serving() as client:
        assert (await client.get("/v1/cells")).json() == {"cells": [], "next": None}


async def test_pages_bring_every_cell_once_in_order():
    names = [f"cell/{i}" for i in range(7)]
    async with serving() as client:
        await fill(client, *(series(cell=name) for name in reversed(names)))
        found, after = [], ""
        for _ in range(3):
            page = (await client.get(f"/v1/cells?limit=3{after}")).json()
            found += [entry["cell"] for entry in page["cells"]]
            after = f"&after={quote(page['next'] or '', safe='')}"
    assert found == names
    assert page["next"] is None


async def test_the_last_page_has_no_next_though_it_is_full():
    async with serving() as client:
        await fill(client, series(cell="a"), series(cell="b"))
        assert (await client.get("/v1/cells?limit=2")).json()["next"] is None


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "page=2"])
async def test_a_page_that_cannot_be_asked_for_is_refused(query):
    async with serving() as client:
        answer = await client.get(f"/v1/cells?{query}")
    assert answer.status_code == 422
    assert answer.json()["path"] == f"query:{query.partition('=')[0]}"


async def test_a_cell_of_two_periods_has_two_entries_finest_first():
    async with serving() as client:
        await fill(client, series(cell="a"), series(cell="a", step_seconds=1.5))
        entries = (await client.get("/v1/cells/a")).json()["cells"]
    assert [entry["step_seconds"] for entry in entries] == [1.5, 900]


@pytest.mark.parametrize("cell", [ODD, "a/b", "ManagedElement=1,NRCellDU=32", "a.b", "%"])
async def test_a_cells_name_may_hold_anything_when_it_is_encoded(cell):
    async with serving() as client:
        await fill(client, series(cell=cell))
        described = await client.get(at(cell))
        forecast = await client.get(at(cell, "/forecast?horizon=1"))
        samples = await client.get(at(cell, "/samples"))
    assert described.json()["cells"][0]["cell"] == cell
    assert forecast.json()["forecasts"][0]["cell"] == cell
    assert samples.json()["cell"] == cell


async def test_a_name_with_a_bare_slash_is_another_route():
    async with serving() as client:
        await fill(client, series(cell="a/b"))
        assert (await client.get("/v1/cells/a/b")).status_code == 404


async def test_an_application_under_a_prefix_finds_its_cells():
    async with serving() as client:
        await fill(client, series(cell="a/b"))
        client.http._transport.root_path = "/rancast"  # type: ignore[attr-defined]
        answer = await client.get("/rancast" + at("a/b"))
    assert answer.status_code == 200


@pytest.mark.parametrize("rest", ["", "/forecast", "/samples"])
async def test_an_unknown_cell_is_not_found(rest):
    async with serving() as client:
        answer = await client.get(at("nowhere", rest))
    assert answer.status_code == 404
    assert "'nowhere'" in answer.json()["detail"]
    assert "GET /v1/cells" in answer.json()["detail"]


async def test_a_stored_cell_is_forecast_as_if_its_samples_were_sent():
    async with serving() as client:
        await fill(client, series(cell="a"))
        stored = await client.get("/v1/cells/a/forecast?horizon=2&quantiles=0.1,0.5")
        sent = await client.post(
            "/v1/forecast",
            {"series": [series(cell="a")], "horizon": 2, "quantiles": [0.1, 0.5]},
        )
    assert stored.json() == sent.json()


async def test_a_forecast_defaults_to_24_steps_and_three_quantiles():
    async with serving() as client:
        await fill(client, series(cell="a"))
        answer = await client.get("/v1/cells/a/forecast")
    quantiles = answer.json()["forecasts"][0]["kpis"]["RRU.PrbTotDl"]
    assert {level: len(values) for level, values in quantiles.items()} == {
        "0.1": 24,
        "0.5": 24,
        "0.9": 24,
    }


async def test_kpis_are_chosen_in_any_spelling_and_keep_it():
    async with serving() as client:
        await fill(client, series(cell="a"))
        forecast = await client.get("/v1/cells/a/forecast?kpi=pmPrbUsedDl")
        samples = await client.get("/v1/cells/a/samples?kpi=pmPrbUsedDl&kpi=DRB.MeanActiveUeDl")
    assert list(forecast.json()["forecasts"][0]["kpis"]) == ["pmPrbUsedDl"]
    assert samples.json()["kpis"] == {
        "pmPrbUsedDl": [12, None, 15.5],
        "DRB.MeanActiveUeDl": [3, 4, 4],
    }


async def test_a_kpi_or_step_that_is_not_stored_is_not_found():
    async with serving() as client:
        await fill(client, series(cell="a"))
        assert (await client.get("/v1/cells/a/samples?kpi=Nope")).status_code == 404
        assert (await client.get("/v1/cells/a/forecast?step_seconds=60")).status_code == 404


async def test_the_finest_period_is_the_default_and_another_can_be_chosen():
    async with serving() as client:
        await fill(client, series(cell="a"), series(cell="a", step_seconds=60))
        for query, step_seconds in [("", 60), ("?step_seconds=900", 900)]:
            samples = await client.get(f"/v1/cells/a/samples{query}")
            forecast = await client.get(f"/v1/cells/a/forecast{query}")
            assert samples.json()["step_seconds"] == step_seconds
            assert forecast.json()["forecasts"][0]["step_seconds"] == step_seconds


async def test_only_the_newest_samples_are_returned():
    async with serving() as client:
        await fill(client, series(cell="a", kpis={"A": [1, 2, 3]}))
        answer = await client.get("/v1/cells/a/samples?steps=2")
    assert answer.json() == {
        "cell": "a",
        "start": "2026-11-01T10:15:00Z",
        "step_seconds": 900,
        "kpis": {"A": [2, 3]},
    }


async def test_samples_can_be_sent_back_for_a_forecast():
    async with serving() as client:
        await fill(client, series(cell="a"))
        samples = (await client.get("/v1/cells/a/samples")).json()
        answer = await client.post("/v1/forecast", {"series": [samples], "horizon": 1})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("horizon=0", "query:horizon"),
        ("horizon=49", "query:horizon"),
        ("horizon=many", "query:horizon"),
        ("quantiles=", "query:quantiles"),
        ("quantiles=0.5;0.9", "query:quantiles"),
        ("quantiles=0.9,0.1", "query:quantiles"),
        ("quantiles=nan", "query:quantiles"),
        ("quantiles=1.5", "query:quantiles"),
        ("quantiles=" + ",".join(["0.5"] * 101), "query:quantiles"),
        ("time_zone=Mars/Olympus", "query:time_zone"),
        ("country=XX", "query:country"),
        ("country=", "query:country"),
        ("step_seconds=-1", "query:step_seconds"),
        ("step_seconds=1e308", "query:step_seconds"),
        ("budget_ms=0", "query:budget_ms"),
        ("kpi=RRU.PrbTotDl&kpi=pmPrbUsedDl", "query:kpi"),
        ("horizn=3", "query:horizn"),
    ],
)
async def test_a_query_that_cannot_be_used_is_refused_by_its_parameter(query, path):
    async with serving() as client:
        await fill(client, series(cell="a"))
        answer = await client.get(f"/v1/cells/a/forecast?{query}")
    assert answer.status_code == 422
    assert answer.json()["path"] == path


@pytest.mark.parametrize(
    ("setting", "query", "country"),
    [
        (None, "", None),
        ("ES", "", "ES"),
        ("ES", "?country=ES-CT", "ES-CT"),
        (None, "?country=JP", "JP"),
    ],
)
async def test_a_stored_cell_keeps_the_holidays_of_the_query_or_else_the_deployment(
    setting, query, country
):
    predictor = RepeatLast()
    async with serving(Settings(holiday_country=setting), predictor=predictor) as client:
        await fill(client, series(cell="a"))
        answer = await client.get(f"/v1/cells/a/forecast{query}")
    assert answer.status_code == 200
    assert predictor.windows[-1].country == country


async def test_the_header_states_the_budget_of_a_stored_cells_forecast():
    async with serving() as client:
        await fill(client, series(cell="a"))
        answer = await client.get("/v1/cells/a/forecast", **{"X-Latency-Budget-Ms": "-5"})
    assert answer.json()["path"] == "header:X-Latency-Budget-Ms"


async def test_metrics_name_the_route_and_never_the_cell():
    async with serving() as client:
        await fill(client, series(cell="secret/cell"))
        await client.get(at("secret/cell", "/forecast"))
        text = (await client.get("/metrics")).text
        route = "/v1/cells/{cell}/forecast"
        assert await client.metric("rancast_request_duration_seconds_count", route=route) == 1
    assert "secret" not in text
