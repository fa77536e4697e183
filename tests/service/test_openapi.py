import pytest
from pydantic import TypeAdapter

from service.app import create_app
from service.schemas import ForecastRequest
from service.settings import Settings

ROUTES = {
    ("post", "/v1/forecast"),
    ("post", "/v1/observations"),
    ("get", "/v1/cells"),
    ("get", "/v1/cells/{cell}"),
    ("get", "/v1/cells/{cell}/samples"),
    ("get", "/v1/cells/{cell}/forecast"),
    ("get", "/v1/model"),
    ("get", "/healthz"),
    ("get", "/readyz"),
    ("get", "/metrics"),
    ("get", "/v1/accuracy"),
    ("get", "/ric/v1/health/alive"),
    ("get", "/ric/v1/health/ready"),
    ("get", "/ric/v1/config"),
    ("get", "/ric/v1/metrics"),
    ("get", "/v1/models"),
    ("get", "/v1/models/{model}"),
    ("post", "/v1/models/{model}:predict"),
    ("get", "/v1/timeseries/models"),
    ("post", "/v1/timeseries/forecast"),
    ("get", "/v2"),
    ("get", "/v2/health/live"),
    ("get", "/v2/health/ready"),
    ("get", "/v2/models"),
    ("get", "/v2/models/{model}"),
    ("get", "/v2/models/{model}/ready"),
    ("post", "/v2/models/{model}/infer"),
    ("get", "/v2/models/{model}/versions/{version}"),
    ("get", "/v2/models/{model}/versions/{version}/ready"),
    ("post", "/v2/models/{model}/versions/{version}/infer"),
    ("post", "/v2/repository/index"),
    ("post", "/v2/repository/models/{model}/load"),
    ("post", "/v2/repository/models/{model}/unload"),
    ("post", "/v2/repository/models/{model}/versions/{version}/load"),
    ("post", "/v2/repository/models/{model}/versions/{version}/unload"),
    ("get", "/v1/routing"),
    ("put", "/v1/routing"),
}
# Errors of these have the shape of a KServe protocol.
KSERVE = {
    "/v1/models": "ErrorText",
    "/v1/timeseries": "TimeseriesErrorResponse",
    "/v2": "ErrorText",
}


@pytest.fixture(scope="module")
def document():
    return create_app(Settings()).openapi()


@pytest.fixture
def operations(document):
    return {
        (method, path): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def references(node):
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield value
            else:
                yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_the_document_has_every_route_and_no_other(operations):
    assert set(operations) == ROUTES


def test_every_route_says_what_it_is_for(operations):
    for operation in operations.values():
        assert operation["summary"]
        assert operation["description"]
        assert operation["tags"]


def test_every_answer_has_a_model(operations):
    for (_, path), operation in operations.items():
        for status, response in operation["responses"].items():
            assert response["description"], (path, status)
            for media, content in response["content"].items():
                assert content["schema"], (path, status, media)


def protocol_of(path):
    for prefix, model in KSERVE.items():
        if path == prefix or path.startswith(prefix + "/"):
            return model
    return None


def test_errors_are_problem_documents_on_our_own_routes(operations):
    for (_, path), operation in operations.items():
        if path in ("/healthz", "/readyz") or protocol_of(path):
            continue
        if path.startswith("/ric/v1/health/"):
            continue
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                assert list(response["content"]) == ["application/problem+json"], path


def test_errors_of_a_kserve_route_have_its_protocols_shape(operations):
    for (_, path), operation in operations.items():
        if protocol_of(path) is None:
            continue
        reference = {"$ref": f"#/components/schemas/{protocol_of(path)}"}
        for status, response in operation["responses"].items():
            assert status != "422", path
            if int(status) >= 400:
                assert response["content"] == {"application/json": {"schema": reference}}, path


def test_every_parameter_is_described(operations):
    for operation in operations.values():
        for parameter in operation.get("parameters", []):
            assert parameter["description"], parameter


def test_every_body_is_declared(operations):
    for (method, path), operation in operations.items():
        takes_one = method in ("post", "put") and not path.startswith("/v2/repository")
        assert ("requestBody" in operation) == takes_one, path


def test_no_reference_leads_nowhere(document):
    schemas = document["components"]["schemas"]
    for reference in references(document):
        assert reference.removeprefix("#/components/schemas/") in schemas


def test_every_field_of_a_request_is_described(document):
    for name in ("ForecastRequest", "ObservationsRequest", "Series", "Event", "PredictRequest"):
        schema = document["components"]["schemas"][name]
        assert schema["additionalProperties"] is False
        assert schema["description"]


def test_the_document_is_built_once():
    app = create_app(Settings())
    assert app.openapi() is app.openapi()


def test_the_body_in_the_document_is_the_one_that_is_read(document):
    schema = TypeAdapter(ForecastRequest).json_schema()
    declared = document["components"]["schemas"]["ForecastRequest"]
    assert declared["properties"].keys() == schema["properties"].keys()


def test_an_instance_in_the_document_is_a_series_rows_or_numbers(document):
    instance = document["components"]["schemas"]["PredictRequest"]["properties"]["instances"]
    series, rows, numbers = instance["items"]["oneOf"]
    assert series == {"$ref": "#/components/schemas/Series"}
    assert rows["items"]["type"] == "array"
    assert numbers["items"]["anyOf"] == [{"type": "number"}, {"type": "null"}]


FORECASTS = (
    ("post", "/v1/forecast"),
    ("get", "/v1/cells/{cell}/forecast"),
    ("post", "/v1/models/{model}:predict"),
    ("post", "/v2/models/{model}/infer"),
    ("post", "/v2/models/{model}/versions/{version}/infer"),
    ("post", "/v1/timeseries/forecast"),
)


@pytest.mark.parametrize("route", FORECASTS)
def test_forecasts_declare_what_they_take_and_answer_in_headers(operations, route):
    operation = operations[route]
    names = {parameter["name"] for parameter in operation["parameters"]}
    assert {"X-Latency-Budget-Ms", "X-Minimum-Rung", "X-Priority"} <= names
    assert "Server-Timing" in operation["responses"]["200"]["headers"]


def test_every_operation_declares_that_it_may_fail_and_when_to_come_back(operations):
    for (_, path), operation in operations.items():
        assert "500" in operation["responses"], path
        for status in {"429", "503"} & operation["responses"].keys():
            assert "Retry-After" in operation["responses"][status]["headers"], path


def test_bodies_say_which_codings_they_may_have(operations):
    for operation in operations.values():
        if "415" in operation["responses"]:
            assert "Content-Encoding gzip or zstd" in operation["requestBody"]["description"]
            assert "Accept-Encoding" in operation["responses"]["415"]["headers"]


def test_infer_declares_answers_with_bytes(operations):
    for route in FORECASTS[3:5]:
        answer = operations[route]["responses"]["200"]
        assert set(answer["content"]) == {"application/json", "application/octet-stream"}
        assert "Inference-Header-Content-Length" in answer["headers"]
