import pytest

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
