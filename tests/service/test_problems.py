import pytest

from service.container import Phase
from tests.service.fakes import forecast_request, serving

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "path", ["/v1/forecast", "/v1/models/fake:predict", "/v2/models/fake/infer"]
)
async def test_an_error_is_short_however_long_the_name_is_that_it_repeats(path):
    body = forecast_request(parameters={"x" * 100_000: 1}, instances=[[1]], **{"y" * 100_000: 1})
    values = {"name": "values", "datatype": "FP32", "shape": [1, 1, 1], "data": [1]}
    async with serving() as client:
        answer = await client.post(path, {**body, "inputs": [values]})
    assert answer.status_code in (400, 422)
    assert len(answer.content) < 10_000
    assert "unknown" in answer.text


async def test_a_service_that_stops_refuses_and_lets_the_connection_go():
    async with serving() as client:
        before = await client.post("/v1/forecast", {})
        assert before.status_code == 422
        assert "connection" not in before.headers
        client.services.move_to(Phase.DRAINING, "the service stops")
        answer = await client.post("/v1/forecast", forecast_request())
    assert answer.status_code == 503
    assert answer.json()["type"] == "urn:rancast:problem:not_ready"
    assert answer.headers["connection"] == "close"
    assert int(answer.headers["retry-after"]) >= 1
