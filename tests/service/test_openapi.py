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


def test_errors_are_problem_documents(operations):
    for (_, path), operation in operations.items():
        if path in ("/healthz", "/readyz") or path.startswith("/ric/v1/health/"):
            continue
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                assert list(response["content"]) == ["application/problem+json"], path


def test_every_parameter_is_described(operations):
    for operation in operations.values():
        for parameter in operation.get("parameters", []):
            assert parameter["description"], parameter


def test_every_post_declares_its_body(operations):
    for (method, path), operation in operations.items():
        assert ("requestBody" in operation) == (method == "post"), path


def test_no_reference_leads_nowhere(document):
    schemas = document["components"]["schemas"]
    for reference in references(document):
        assert reference.removeprefix("#/components/schemas/") in schemas


def test_every_field_of_a_request_is_described(document):
    for name in ("ForecastRequest", "ObservationsRequest", "Series", "Event"):
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
