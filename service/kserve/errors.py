"""Errors in the shapes of KServe's protocols.

V1 and V2 have one member, `{"error": "…"}`; the time-series API has `{"error": {"code", "message",
"param", "type"}}`. All three call every unusable request a 400.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus

from pydantic import BaseModel, Field

from service.errors import Fault

_PLAIN = ("/v1/models", "/v2")
_TYPED = ("/v1/timeseries",)


class ErrorText(BaseModel):
    """An error of KServe V1 and V2."""

    error: str = Field(description="What was expected, what came, and where.")


class TimeseriesError(BaseModel):
    """What went wrong with a request of the time-series API."""

    code: str = Field(description="The HTTP status.", examples=["400"])
    message: str
    param: str = Field(description="JSON Pointer into the body, or empty.")
    type: str = Field(examples=["BadRequestError"])


class TimeseriesErrorResponse(BaseModel):
    """An error of the time-series API."""

    error: TimeseriesError


@dataclass(frozen=True, slots=True)
class ProtocolError:
    """An error as a protocol writes it: HTTP status and JSON text."""

    status: int
    body: bytes


def protocol_error(
    path: str, status: int, detail: str, faults: Sequence[Fault] = ()
) -> ProtocolError | None:
    """The error in the shape of the route's protocol, None where the route is our own.

    Args:
        path: The request's path below the application's root.
        status: HTTP status of the same error on our own routes.
        detail: What went wrong.
        faults: What is wrong with the request, where it is its values.
    """
    if status == HTTPStatus.UNPROCESSABLE_ENTITY:
        status = HTTPStatus.BAD_REQUEST
    if _is_under(path, _PLAIN):
        wrong = [
            f"{fault.path}: {fault.reason}" if fault.path else fault.reason for fault in faults
        ]
        return _error(status, ErrorText(error="; ".join(wrong) or detail))
    if _is_under(path, _TYPED):
        error = TimeseriesError(
            code=str(int(status)),
            message=detail,
            param=faults[0].path if faults else "",
            type=_type_of(status),
        )
        return _error(status, TimeseriesErrorResponse(error=error))
    return None


def error_model(path: str) -> type[BaseModel] | None:
    """The shape of errors under a path template, None where the route is our own."""
    if _is_under(path, _PLAIN):
        return ErrorText
    return TimeseriesErrorResponse if _is_under(path, _TYPED) else None


def _is_under(path: str, prefixes: Sequence[str]) -> bool:
    return any(path == prefix or path.startswith(prefix + "/") for prefix in prefixes)


def _error(status: int, shape: BaseModel) -> ProtocolError:
    return ProtocolError(int(status), json.dumps(shape.model_dump()).encode())


def _type_of(status: int) -> str:
    """The status as a name: `NotFoundError`."""
    try:
        words = HTTPStatus(status).phrase.title().replace(" ", "")
    except ValueError:
        return "RequestError"
    return words.removesuffix("Error") + "Error"
