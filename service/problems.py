"""Errors as answers, from the table in `service.errors`.

RFC 9457 problem details on our own routes, the protocol's own shape on those of KServe's protocols.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from service.container import Phase, services_of
from service.errors import (
    ANSWERS,
    Answer,
    ClientGoneError,
    DeadlineError,
    Fault,
    ForbiddenError,
    HeadTooLargeError,
    InvalidRequestError,
    MediaTypeError,
    NotReadyError,
    OverloadedError,
    RateLimitedError,
    RequestError,
    TooLargeError,
    UnauthorizedError,
)
from service.faults import query_faults
from service.kserve.errors import protocol_error
from service.logs import log_event, log_failure
from service.request_identity import REQUEST_ID_HEADER, instance_of, request_id_of
from service.timing import SCOPE_KEY, RequestTiming, route_of

_LOGGER = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
_NOT_READY_RETRY_S = 5
# Names that clients made up come back in what is said of them, and may be as long as a body.
_MOST_LETTERS = 2_000


def install_problem_handlers(app: FastAPI) -> None:
    """Answer every error of the application in the shape that its route's protocol has."""
    app.add_exception_handler(RequestError, _on_request_error)
    app.add_exception_handler(RequestValidationError, _on_bad_parameters)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_bug)


async def _on_request_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return answer_error(request, error)


def answer_error(request: Request, error: RequestError) -> Response:
    """The answer to an error, counted; for what refuses a request before the router has it."""
    answer = ANSWERS[type(error)]
    metrics = services_of(request).metrics
    metrics.count_rejected(route_of(request.scope), answer.slug)
    timing = request.scope.get(SCOPE_KEY)
    if isinstance(timing, RequestTiming):
        timing.error = type(error)
    if isinstance(error, DeadlineError):
        metrics.count_exceeded(error.stage)
    if answer.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        log_failure(_LOGGER, "request_failed", error, path=request.url.path)
    else:
        log_event(
            _LOGGER,
            logging.DEBUG,
            "request_refused",
            status=answer.status,
            reason=answer.slug,
            path=request.url.path,
            detail=error,
        )
    faults = error.faults if isinstance(error, InvalidRequestError) else ()
    headers = _headers(error)
    if services_of(request).phase is Phase.DRAINING:
        # The next request belongs to another replica, and to another connection.
        headers["Connection"] = "close"
    return _respond(request, answer, _detail(error, faults), headers, faults)


async def _on_bad_parameters(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first, *others = query_faults(error.errors())
    return await _on_request_error(
        request, InvalidRequestError(first.path, first.reason, tuple(others))
    )


async def _on_http_error(request: Request, error: Exception) -> Response:
    """What the router itself refuses: no such path, no such method."""
    assert isinstance(error, HTTPException)
    services_of(request).metrics.count_rejected(route_of(request.scope), "route")
    phrase = HTTPStatus(error.status_code).phrase
    slug = phrase.lower().replace(" ", "_")
    detail = f"{request.method} {request.url.path}: {phrase.lower()}; /docs lists the routes"
    answer = Answer(error.status_code, slug, phrase)
    return _respond(request, answer, detail, dict(error.headers or {}))


async def _on_bug(request: Request, _error: Exception) -> Response:
    # The server logs the traceback; the client learns nothing about our insides.
    services_of(request).metrics.count_rejected(route_of(request.scope), "bug")
    answer = Answer(500, "bug", "The service failed")
    # Written outside of what puts the request's id on every other answer.
    request_id = request_id_of(request.scope)
    headers = {REQUEST_ID_HEADER: request_id} if request_id else {}
    return _respond(request, answer, "an unexpected error; the service's log has it", headers)


def _detail(error: RequestError, faults: Sequence[Fault]) -> str:
    return faults[0].reason if faults else str(error)


def _headers(error: RequestError) -> dict[str, str]:
    if isinstance(error, OverloadedError | RateLimitedError):
        return {"Retry-After": str(error.retry_after_s)}
    if isinstance(error, NotReadyError):
        return {"Retry-After": str(_NOT_READY_RETRY_S)}
    if isinstance(error, MediaTypeError):
        return error.headers
    if isinstance(error, UnauthorizedError):
        # RFC 6750, section 3.1: no error code where no token was presented.
        error_code = ', error="invalid_token"' if error.presented else ""
        return {"WWW-Authenticate": f'Bearer realm="rancast"{error_code}'}
    if isinstance(error, ForbiddenError):
        challenge = f'Bearer realm="rancast", error="insufficient_scope", scope="{error.scope}"'
        return {"WWW-Authenticate": challenge}
    if isinstance(error, TooLargeError | ClientGoneError | HeadTooLargeError):
        # The rest of the body was not read; the connection cannot be used again.
        return {"Connection": "close"}
    return {}


def _respond(
    request: Request,
    answer: Answer,
    detail: str,
    headers: dict[str, str],
    faults: Sequence[Fault] = (),
) -> Response:
    """The error in the shape of the route's protocol; ours is a problem document."""
    detail = _shortened(detail)
    faults = [Fault(_shortened(fault.path), _shortened(fault.reason)) for fault in faults]
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    foreign = protocol_error(path, answer.status, detail, faults)
    if foreign is None:
        return _problem(request, answer, detail, headers, faults)
    return Response(
        foreign.body, status_code=foreign.status, headers=headers, media_type="application/json"
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else text[: _MOST_LETTERS - 1] + "…"


def _problem(
    request: Request,
    answer: Answer,
    detail: str,
    headers: dict[str, str],
    faults: Sequence[Fault] = (),
) -> Response:
    return Response(
        problem_text(answer, detail, instance_of(request.scope), faults),
        status_code=answer.status,
        headers=headers,
        media_type=MEDIA_TYPE,
    )


def problem_text(
    answer: Answer, detail: str, instance: str | None, faults: Sequence[Fault] = ()
) -> bytes:
    """A problem document as JSON.

    Args:
        answer: Which problem.
        detail: What was expected, what came and how to mend it.
        instance: The request that met it.
        faults: What is wrong with the request, where it is its values.
    """
    body: dict[str, Any] = {
        "type": f"urn:rancast:problem:{answer.slug}",
        "title": answer.title,
        "status": answer.status,
        "detail": detail,
    }
    if instance:
        body["instance"] = instance
    if faults:
        body["path"] = faults[0].path
    if len(faults) > 1:
        body["errors"] = [{"path": fault.path, "reason": fault.reason} for fault in faults]
    return orjson.dumps(body)
