"""The OpenAPI document, completed with the bodies that routes read themselves.

Routes read bodies as bytes, to bound and time them; FastAPI then does not know their models, nor
that every error is a problem document. Both are added here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from service.kserve.errors import ErrorText, TimeseriesErrorResponse
from service.kserve.messages import InferRequest
from service.kserve.timeseries import TimeseriesForecastRequest
from service.kserve.v1 import PredictRequest
from service.problems import MEDIA_TYPE
from service.schemas import ForecastRequest, ObservationsRequest, Problem

# Bodies that routes read themselves, and errors, which no route names by its class.
_MODELS = (
    ForecastRequest,
    ObservationsRequest,
    Problem,
    PredictRequest,
    InferRequest,
    TimeseriesForecastRequest,
    ErrorText,
    TimeseriesErrorResponse,
)
_REF = "#/components/schemas/{model}"
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
    for operations in document["paths"].values():
        for operation in operations.values():
            _correct_422(operation["responses"])
    for name in _FRAMEWORK_ERRORS:
        schemas.pop(name, None)
    document["components"]["schemas"] = dict(sorted(schemas.items()))
    return document


def _correct_422(responses: dict[str, Any]) -> None:
    """Drop the framework's own shape of a validation error, which is never sent."""
    if MEDIA_TYPE not in responses.get("422", {}).get("content", {MEDIA_TYPE: None}):
        del responses["422"]
    else:
        responses.get("422", {}).get("content", {}).pop("application/json", None)
