"""The short way in says what the router's way would."""

from __future__ import annotations

import pytest

from tests.service.fakes import RepeatLast, forecast_request, serving

pytestmark = pytest.mark.anyio

ROUTE = {"route": "/v1/forecast", "profile": "near-rt"}
COUNT = "rancast_request_duration_seconds_count"


async def test_a_forecast_needs_no_router():
    async with serving() as client:
        client.app.router.routes.clear()
        assert (await client.post("/v1/forecast", forecast_request())).status_code == 200
        assert (await client.get("/v1/model")).status_code == 404


async def test_an_answer_is_counted_under_the_template_of_its_route():
    async with serving() as client:
        assert (await client.post("/v1/forecast", forecast_request())).status_code == 200
        assert await client.metric(COUNT, **ROUTE) == 1


async def test_an_error_of_the_request_is_a_problem_and_counted_under_its_route():
    async with serving() as client:
        answer = await client.post("/v1/forecast", forecast_request(horizon=0))
        assert answer.status_code == 422
        assert answer.headers["content-type"] == "application/problem+json"
        assert await client.metric(COUNT, **ROUTE) == 1


async def test_a_bug_is_a_problem_without_its_insides():
    async with serving(predictor=RepeatLast()) as client:
        client.services.limits = "no limits"  # type: ignore[assignment]
        answer = await client.post("/v1/forecast", forecast_request())
        assert answer.status_code == 500
        assert answer.json()["type"] == "urn:rancast:problem:bug"
        assert "no limits" not in answer.text
        assert await client.metric("rancast_requests_rejected_total", reason="bug") == 1


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS", "HEAD"])
async def test_other_methods_are_the_routers_matter(method):
    async with serving() as client:
        answer = await client.http.request(method, "/v1/forecast")
        assert answer.status_code == 405
        assert answer.headers["allow"] == "POST"
