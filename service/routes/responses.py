"""What every route can answer besides success, for the OpenAPI document."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from service.problems import MEDIA_TYPE

_REF = {"$ref": "#/components/schemas/Problem"}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Entries of `responses=` for these statuses, each a problem document."""
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": _REF}},
        }
        for status in statuses
    }


def json_body(model: str, description: str) -> dict[str, Any]:
    """An `openapi_extra=` that declares a JSON body of this model, which the route reads itself."""
    return {
        "requestBody": {
            "required": True,
            "description": description,
            "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{model}"}}},
        }
    }


def kserve_errors(*statuses: int, model: str = "ErrorText") -> dict[int | str, dict[str, Any]]:
    """Entries of `responses=` for these statuses, each in the shape of a KServe protocol."""
    schema = {"$ref": f"#/components/schemas/{model}"}
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {"application/json": {"schema": schema}},
        }
        for status in statuses
    }
