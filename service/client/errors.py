"""What can go wrong with a call, and how a problem document (RFC 9457) becomes an error.

ClientError
  UnreachableError        no connection, or one that broke
  DeadlineExceededError   no answer in time: the call's timeout, or the server's latency budget
  UnexpectedAnswerError   an answer that is not the service's
  ApiError                the service refused, and said why
    InvalidCallError      a value that it cannot use (400, 415, 422)
    ForbiddenError        no token, or one that may not (401, 403)
    NotHeldError          a cell, KPI or model that it does not hold (404)
    TooLargeError         more than it takes in one call (413)
    OverloadedError       it is busy (429)
    UnavailableError      it starts, stops, or cannot store (503)
    ServerFailedError     it failed (500)
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Any


class ClientError(Exception):
    """Base of all errors of the client."""


class UnreachableError(ClientError):
    """The server cannot be reached, or the connection broke; nothing is known of the call.

    Attributes:
        is_sent: Whether some of the request may have arrived.
    """

    def __init__(self, reason: str, *, is_sent: bool = True) -> None:
        super().__init__(reason)
        self.is_sent = is_sent


class DeadlineExceededError(ClientError):
    """There was no answer in time."""


class UnexpectedAnswerError(ClientError):
    """The answer is not one of the service's: another server, or a proxy before it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a call: where in the request, and what was expected."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Problem:
    """What the service said.

    Attributes:
        status: HTTP status.
        slug: Last part of the problem's type, such as `invalid` or `full`.
        detail: What was expected and what came.
        faults: What is wrong with the request, where it is its values.
        retry_after_s: When to try again, None where the service did not say.
    """

    status: int
    slug: str
    detail: str
    faults: tuple[Fault, ...] = ()
    retry_after_s: float | None = None


class ApiError(ClientError):
    """The service refused the call.

    Attributes:
        problem: What it said.
    """

    def __init__(self, problem: Problem) -> None:
        place = f"{problem.faults[0].path}: " if problem.faults else ""
        super().__init__(f"{problem.status} {problem.slug}: {place}{problem.detail}")
        self.problem = problem


class InvalidCallError(ApiError):
    """A value that the service cannot use; `problem.faults` say where."""


class ForbiddenError(ApiError):
    """There is no token, or it does not allow this call."""


class NotHeldError(ApiError):
    """A cell, KPI or model that the service does not hold."""


class TooLargeError(ApiError):
    """More than the service takes in one call; divide it over several."""


class OverloadedError(ApiError):
    """The service is busy; `problem.retry_after_s` says when to come back."""


class UnavailableError(ApiError):
    """The service starts, stops, or cannot keep what was sent."""


class ServerFailedError(ApiError):
    """The service failed."""


_KINDS: Mapping[int, type[ApiError]] = MappingProxyType(
    {
        400: InvalidCallError,
        401: ForbiddenError,
        403: ForbiddenError,
        404: NotHeldError,
        413: TooLargeError,
        415: InvalidCallError,
        422: InvalidCallError,
        429: OverloadedError,
        503: UnavailableError,
    }
)
_DEADLINE = 504


def error_of(
    status: int,
    retry_after: str | None,
    body: bytes,
    date: str | None = None,
) -> ClientError:
    """The error that an answer tells of.

    Args:
        status: HTTP status, which is not one of success.
        retry_after: The header of that name, None where there is none.
        body: A problem document; what is none, of a proxy for example, is told by its status.
        date: The header of that name, from which a date in the other counts: both are the server's
            time, which this machine's may differ from.
    """
    said = _read(body)
    problem = Problem(
        status,
        str(said.get("type", "unknown")).rpartition(":")[2],
        str(said.get("detail", "no problem document")),
        _faults(said),
        _seconds(retry_after, date),
    )
    if status == _DEADLINE:
        return DeadlineExceededError(problem.detail)
    return _KINDS.get(status, ServerFailedError if status >= 500 else ApiError)(problem)


def _read(body: bytes) -> Mapping[str, Any]:
    try:
        said = json.loads(body)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _faults(said: Mapping[str, Any]) -> tuple[Fault, ...]:
    listed = said.get("errors")
    if isinstance(listed, list):
        return tuple(
            Fault(str(each.get("path")), str(each.get("reason")))
            for each in listed
            if isinstance(each, dict)
        )
    if "path" in said:
        return (Fault(str(said["path"]), str(said.get("detail"))),)
    return ()


def _seconds(retry_after: str | None, date: str | None) -> float | None:
    """The header in seconds: a number of them, or a date (RFC 9110, section 10.2.3)."""
    try:
        seconds = float(retry_after or "")
    except ValueError:
        return _seconds_between(date, retry_after)
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _seconds_between(sooner: str | None, later: str | None) -> float | None:
    """From one date to another, None where one is none; 0 where they are the other way round."""
    try:
        begin, end = (_moment(sooner), _moment(later))
    except ValueError:
        return None
    return max(0.0, (end - begin).total_seconds())


def _moment(date: str | None) -> datetime:
    moment = parsedate_to_datetime(date or "")
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)  # the zone -0000 says nothing
