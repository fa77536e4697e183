"""What every route can answer besides success, for the OpenAPI document."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from service.bodies import JSON_MEDIA_TYPE
from service.budget import BUDGET_HEADER, PRIORITY_HEADER, RUNG_HEADER
from service.codecs.arrow_columns import column_types
from service.codecs.arrow_requests import METADATA_KEY
from service.codecs.arrow_stream import ARROW_MEDIA_TYPE
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


def histories_body(model: str, description: str) -> dict[str, Any]:
    """An `openapi_extra=` that declares a body with histories, which the route reads itself.

    Args:
        model: Shape of the body as JSON.
        description: What it is for.
    """
    forms = {
        JSON_MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{model}"}},
        ARROW_MEDIA_TYPE: {"schema": _binary(_request_words(model))},
    }
    return {
        "requestBody": {"required": True, "description": description, "content": forms},
    }


def demand_headers() -> dict[str, Any]:
    """An `openapi_extra=` that declares the headers by which a request says what it demands.

    They are read in `service.demands`: declared as parameters of the route they would cost each
    request a tenth of a millisecond.
    """
    texts = {
        BUDGET_HEADER: "Latency budget in milliseconds, where budget_ms states none. What cannot "
        "be answered within it is refused before its body is read.",
        RUNG_HEADER: "Least rung that is an answer (full, short, baseline), where minimum_rung "
        "states none.",
        PRIORITY_HEADER: "control or batch, where priority states none.",
    }
    return {
        "parameters": [
            {"name": name, "in": "header", "required": False, "description": text}
            | {"schema": {"type": "string"}}
            for name, text in texts.items()
        ]
    }


def arrow_answer() -> dict[int | str, dict[str, Any]]:
    """An entry of `responses=` for forecasts that are answered as an Arrow stream as well."""
    words = (
        "An Arrow IPC stream, where Accept asks for it. One row a cell and KPI: cell, kpi, start, "
        "step_seconds; a column a level (q0.1 and so on), each a fixed-size list of float32, NaN "
        "where nothing can be said; rung, context_start, context_end, missing_ratio, age_seconds. "
        f"The model is JSON in the schema's metadata, under the key {METADATA_KEY}."
    )
    return {200: {"content": {ARROW_MEDIA_TYPE: {"schema": _binary(words)}}}}


def _request_words(model: str) -> str:
    columns = "; ".join(f"{name}: {kind}" for name, kind in column_types())
    words = f"An Arrow IPC stream. One row a cell and KPI, with the columns {columns}."
    if model == "ForecastRequest":
        words += (
            " The other fields of the JSON form are a JSON object in the schema's metadata, under "
            f"the key {METADATA_KEY}."
        )
    return words


def _binary(description: str) -> dict[str, Any]:
    return {"type": "string", "format": "binary", "description": description}


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


def json_body(model: str, description: str) -> dict[str, Any]:
    """An `openapi_extra=` that declares a JSON body of this model, which the route reads itself."""
    content = {JSON_MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{model}"}}}
    return {"requestBody": {"required": True, "description": description, "content": content}}
