import json

import pytest

from service.errors import Fault
from service.kserve.errors import protocol_error

WRONG = [Fault("/inputs/0", "expected a, got b"), Fault("/inputs/1", "expected c")]


def written(path, status=422, faults=WRONG):
    error = protocol_error(path, status, "expected a, got b", faults)
    assert error is not None
    return error.status, json.loads(error.body)


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/m:predict", "/v2", "/v2/health/live"])
def test_v1_and_v2_have_one_member_that_says_it_all(path):
    assert written(path) == (
        400,
        {"error": "/inputs/0: expected a, got b; /inputs/1: expected c"},
    )
    assert written(path, 404, [])[1] == {"error": "expected a, got b"}


def test_the_time_series_api_has_code_message_param_and_type():
    error = {
        "code": "400",
        "message": "expected a, got b",
        "param": "/inputs/0",
        "type": "BadRequestError",
    }
    assert written("/v1/timeseries/forecast") == (400, {"error": error})


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (404, "NotFoundError"),
        (429, "TooManyRequestsError"),
        (500, "InternalServerError"),
        (499, "RequestError"),
    ],
)
def test_the_type_names_the_status(status, name):
    assert written("/v1/timeseries/models", status, [])[1]["error"]["type"] == name


@pytest.mark.parametrize("path", ["/v1/model", "/v1/modelsX", "/v1/forecast", "/v22", "/", "/v1"])
def test_our_own_routes_have_problem_documents(path):
    assert protocol_error(path, 422, "wrong") is None
