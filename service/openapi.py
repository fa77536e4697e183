"""The OpenAPI document, completed with the bodies that routes read themselves.

Routes read bodies as bytes, to bound and time them; FastAPI then does not know their models, nor
that every error is a problem document. Both are added here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from service.access.scopes import DEMANDS, OpenPaths, Scope
from service.budget import BUDGET_HEADER
from service.codecs.compression import ENCODINGS
from service.kserve.errors import ErrorText, TimeseriesErrorResponse, error_model
from service.kserve.messages import InferRequest
from service.kserve.timeseries import TimeseriesForecastRequest
from service.kserve.v1 import PredictRequest
from service.problems import MEDIA_TYPE
from service.routes.models import RoutingBody
from service.routes.responses import kserve_errors, problems
from service.schemas import ForecastRequest, ObservationsRequest, Problem

# Bodies that routes read themselves, and errors, which no route names by its class.
_MODELS = (
    ForecastRequest,
    ObservationsRequest,
    Problem,
    RoutingBody,
    PredictRequest,
    InferRequest,
    TimeseriesForecastRequest,
    ErrorText,
    TimeseriesErrorResponse,
)
_REF = "#/components/schemas/{model}"
_SCHEME = "bearer"
_SCHEME_TEXT = (
    "Asked for where the service has a token file. The names beside it are the scopes of which the "
    "token needs one."
)
# What the door answers, before any route.
_DOOR_STATUSES = (401, 403, 429, 431)
_RETRIED_STATUSES = {"429", "503"}
_FRAMEWORK_ERRORS = ("HTTPValidationError", "ValidationError")


def openapi_builder(app: FastAPI) -> Callable[[], dict[str, Any]]:
    """A function for `app.openapi` that builds the document once."""
    built: dict[str, Any] = {}

    def openapi() -> dict[str, Any]:
        if not built:
            built.update(_document(app))
        return built

    return openapi


def _document(app: FastAPI) -> dict[str, Any]:
    document: dict[str, Any] = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=app.description,
        routes=app.routes,
    )
    schemas: dict[str, Any] = document.setdefault("components", {}).setdefault("schemas", {})
    _, bodies = models_json_schema(
        [(model, "validation") for model in _MODELS],
        ref_template=_REF,
    )
    schemas.update(bodies["$defs"])
    open_paths = OpenPaths(app.state.services.settings.open_paths)
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            _correct_422(operation["responses"])
            scope = DEMANDS.get((method.upper(), path), Scope.ADMIN)
            if path not in open_paths and scope is not Scope.NONE:
                _lock(operation, scope, error_model(path))
            _complete(operation, error_model(path))
    document["components"]["securitySchemes"] = {
        _SCHEME: {"type": "http", "scheme": "bearer", "description": _SCHEME_TEXT}
    }
    for name in _FRAMEWORK_ERRORS:
        schemas.pop(name, None)
    document["components"]["schemas"] = dict(sorted(schemas.items()))
    return document


def _complete(operation: dict[str, Any], model: type[BaseModel] | None) -> None:
    """Add what holds for all routes: failures of our own, headers of answers, coded bodies."""
    responses = operation["responses"]
    failure = problems(500) if model is None else kserve_errors(500, model=model.__name__)
    responses.setdefault("500", failure[500])
    for status in _RETRIED_STATUSES & responses.keys():
        responses[status].setdefault("headers", {})["Retry-After"] = {
            "description": "Seconds until another try is worth it.",
            "schema": {"type": "integer", "minimum": 0},
        }
    names = {parameter["name"] for parameter in operation.get("parameters", ())}
    if BUDGET_HEADER in names:
        responses["200"].setdefault("headers", {})["Server-Timing"] = {
            "description": "Milliseconds by stage (decode, window, queue, infer, encode), their "
            "total, and the budget that held, as in W3C Server Timing.",
            "schema": {"type": "string"},
            "example": "queue;dur=0.210, infer;dur=3.100, total;dur=4.020, budget;dur=100",
        }
    if "415" in responses:
        body = operation["requestBody"]
        body["description"] += f" May be compressed: Content-Encoding {' or '.join(ENCODINGS)}."
        responses["415"].setdefault("headers", {})["Accept-Encoding"] = {
            "description": "Content codings that are read, where the body's is another.",
            "schema": {"type": "string"},
        }
    operation["responses"] = dict(sorted(responses.items()))


def _lock(operation: dict[str, Any], scope: Scope, model: type[BaseModel] | None) -> None:
    """Say what the operation demands, and how the door refuses: in the protocol of the route."""
    operation["security"] = [{_SCHEME: [scope.value]}]
    responses = operation["responses"]
    refusals = (
        problems(*_DOOR_STATUSES)
        if model is None
        else kserve_errors(*_DOOR_STATUSES, model=model.__name__)
    )
    for status, response in refusals.items():
        responses.setdefault(str(status), response)
    operation["responses"] = dict(sorted(responses.items()))


def _correct_422(responses: dict[str, Any]) -> None:
    """Drop the framework's own shape of a validation error, which is never sent."""
    if MEDIA_TYPE not in responses.get("422", {}).get("content", {MEDIA_TYPE: None}):
        del responses["422"]
    else:
        responses.get("422", {}).get("content", {}).pop("application/json", None)
