import re

import pytest

from service.container import Phase
from tests.service.fakes import RepeatLast, forecast_request, serving

pytestmark = pytest.mark.anyio


async def test_a_started_service_lives_and_is_ready():
    async with serving() as client:
        assert (await client.get("/healthz")).json() == {"status": "alive", "reason": None}
        assert (await client.get("/readyz")).json() == {"status": "ready", "reason": None}


async def test_a_stopping_service_lives_but_takes_nothing():
    async with serving() as client:
        client.services.move_to(Phase.DRAINING, "stopping after SIGTERM")
        ready = await client.get("/readyz")
        assert ready.status_code == 503
        assert ready.json() == {"status": "draining", "reason": "stopping after SIGTERM"}
        assert (await client.get("/healthz")).status_code == 200
        refused = await client.post("/v1/forecast", forecast_request())
        assert refused.status_code == 503
        assert refused.headers["retry-after"]
        assert "SIGTERM" in refused.json()["detail"]


async def test_a_dead_engine_is_neither_ready_nor_alive():
    async with serving() as client:
        assert client.services.running is not None
        await client.services.running.engine.drain(0)
        assert (await client.get("/readyz")).status_code == 503
        health = await client.get("/healthz")
        assert health.status_code == 503
        assert "engine" in health.json()["reason"]
        assert (await client.post("/v1/forecast", forecast_request())).status_code == 503


async def test_the_model_card_says_who_answers():
    async with serving() as client:
        card = (await client.get("/v1/model")).json()
    assert card["name"] == "fake"
    assert card["digest"] == "sha256:feed"
    assert card["max_horizon"] == 48
    assert card["quantile_range"] == [0.05, 0.95]


async def test_metrics_are_in_prometheus_text():
    async with serving() as client:
        answer = await client.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain")
        assert await client.metric("rancast_model_info", version="1.2.3") == 1
    assert "rancast_store_cells 0.0" in answer.text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/v3/forecast", 404), ("DELETE", "/v1/forecast", 405), ("GET", "/v1/cells/", 404)],
)
async def test_a_route_that_does_not_exist_is_a_problem_document(method, path, status):
    async with serving() as client:
        answer = await client.http.request(method, path)
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
        assert await client.metric("rancast_requests_rejected_total", reason="route") == 1


async def test_a_bug_of_ours_is_a_problem_document_without_its_insides():
    model = RepeatLast()
    async with serving(predictor=model) as client:
        client.services.running.models.default.card = "no card"  # type: ignore[union-attr]
        answer = await client.get("/v1/model")
        assert answer.status_code == 500
        assert answer.headers["content-type"] == "application/problem+json"
        assert "no card" not in answer.text
        assert await client.metric("rancast_requests_rejected_total", reason="bug") == 1


@pytest.mark.parametrize("path", ["/", "/docs"])
async def test_a_page_loads_nothing_from_elsewhere_and_everything_it_names_is_there(path):
    async with serving() as client:
        page = await client.get(path)
        assert page.status_code == 200
        assert "default-src 'self'" in page.headers["content-security-policy"]
        assert "style=" not in page.text
        assert "<script>" not in page.text
        parts = re.findall(r'(?:href|src)="(static/[^"]+)"', page.text)
        assert parts
        for part in parts:
            found = await client.get(f"/{part}")
            assert found.status_code == 200
            assert found.headers["x-content-type-options"] == "nosniff"
            assert not re.search(r"https?://(?!www\.w3\.org/)", found.text)


async def test_a_script_that_a_page_imports_is_there():
    async with serving() as client:
        script = (await client.get("/static/operator.js")).text
        (module,) = re.findall(r'from "\./([^"]+)"', script)
        assert (await client.get(f"/static/{module}")).status_code == 200


@pytest.mark.parametrize("name", ["settings.py", "..%2Fsettings.py", "operator.html", "nothing.js"])
async def test_only_parts_of_the_pages_are_served(name):
    async with serving() as client:
        assert (await client.get(f"/static/{name}")).status_code == 404
