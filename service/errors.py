"""What can go wrong in the service, and the one table from error to HTTP answer.

ServiceError
  SettingsError        settings that the service cannot start with
  StartupError         the service could not be made ready
  InvalidRequestError  a field or parameter with a value that cannot be used (422)
  MalformedBodyError   a body that is not JSON, Arrow or compressed, as it says (400)
  NotFoundError        a cell, a KPI of a cell, or a model that is not held (404)
  ConflictError        a change that does not go with the models in service (409)
  TooLargeError        a body or a number of series over the limit (413)
  MediaTypeError       a body of another content type (415)
  NotAcceptableError   an answer in no form that the client takes (406)
  ClientGoneError      the client closed the connection; nobody reads the answer
  OverloadedError      the queue is full (429, with Retry-After)
    BudgetError        no rung fits the latency budget (429, with Retry-After)
  UnauthorizedError    no token that is known (401)
  ForbiddenError       a token without the scope that the route demands (403)
  RateLimitedError     one client asks too often (429, with Retry-After)
  HeadTooLargeError    too many headers, or too long a head (431)
  InferenceError       the model failed (500)
  StorageError         the journal cannot keep what was sent (503)
  NotReadyError        starting or stopping (503)
  DescriptorError      the xApp descriptor cannot be used (503)
  DeadlineError        the latency budget is spent (504)

Answers follow RFC 9457 (`application/problem+json`). Their `path` member says what was wrong: a
JSON Pointer (RFC 6901) into the body, `query:NAME` or `header:NAME`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType


class ServiceError(Exception):
    """Base of all errors of the service."""


class SettingsError(ServiceError):
    """Settings that the service cannot start with; the message names each and how to mend it."""


class StartupError(ServiceError):
    """The service could not be made ready: no checkpoint, no journal, no address.

    Attributes:
        exit_code: What the process should end with.
    """

    def __init__(self, reason: str, *, exit_code: int = 1) -> None:
        super().__init__(reason)
        self.exit_code = exit_code


class RequestError(ServiceError):
    """Base of all errors that are the answer to one request."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a request: where, and what was expected."""

    path: str
    reason: str


class InvalidRequestError(RequestError):
    """A field or parameter cannot be used.

    Attributes:
        faults: What is wrong, at least one.
    """

    def __init__(self, path: str, reason: str, others: Sequence[Fault] = ()) -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.faults = (Fault(path, reason), *others)


class MalformedBodyError(RequestError):
    """The body is not in the form that its headers state; the message says where it breaks."""


class NotFoundError(RequestError):
    """A cell, or a KPI of a cell, that the store does not hold; a model that is not served."""


class ConflictError(RequestError):
    """A change of the models in service that what is served, or what the file holds, forbids."""


class TooLargeError(RequestError):
    """A body, or a number of series, over the service's limit."""


class MediaTypeError(RequestError):
    """A body of a content type, or in an encoding, that this route does not read.

    Attributes:
        headers: What is read, as the response header fields Accept or Accept-Encoding (RFC 9110,
            sections 12.5.1 and 12.5.3).
    """

    def __init__(self, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.headers = dict(headers or {})


class NotAcceptableError(RequestError):
    """The client's Accept header names no form in which the route answers."""


class ClientGoneError(RequestError):
    """The client closed the connection before the answer was ready."""


class OverloadedError(RequestError):
    """The queue is full.

    Attributes:
        retry_after_s: When to try again, whole seconds.
    """

    def __init__(self, reason: str, retry_after_s: int) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class BudgetError(OverloadedError):
    """No rung that the request takes would be in time; nothing was worked on."""


class UnauthorizedError(RequestError):
    """The route needs a token, and the request has none that is known.

    Attributes:
        presented: Whether it had one.
    """

    def __init__(self, reason: str, *, presented: bool) -> None:
        super().__init__(reason)
        self.presented = presented


class ForbiddenError(RequestError):
    """The token is known and may not do this.

    Attributes:
        scope: What it would need.
    """

    def __init__(self, reason: str, scope: str) -> None:
        super().__init__(reason)
        self.scope = scope


class RateLimitedError(RequestError):
    """One client asks more often than it may.

    Attributes:
        retry_after_s: When to try again, whole seconds.
    """

    def __init__(self, reason: str, retry_after_s: int) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class HeadTooLargeError(RequestError):
    """More headers, or more bytes of a path, a query and headers, than the service reads."""


class InferenceError(RequestError):
    """The model failed on a well-formed request."""


class StorageError(RequestError):
    """The journal cannot keep what was sent; nothing was acknowledged."""


class NotReadyError(RequestError):
    """The service is starting, failed to start, or stopping."""


class DescriptorError(RequestError):
    """The xApp descriptor that the platform mounted cannot be used; it may be mended meanwhile."""


class DeadlineError(RequestError):
    """The latency budget is spent.

    Attributes:
        stage: Where the request was when its budget ran out.
    """

    def __init__(self, stage: str, budget_ms: float) -> None:
        super().__init__(
            f"the budget of {budget_ms:g} ms ran out in stage {str(stage)!r}; state a larger "
            "budget_ms or send fewer series"
        )
        self.stage = stage


@dataclass(frozen=True, slots=True)
class Answer:
    """How one class of error is answered.

    Attributes:
        status: HTTP status.
        slug: Last part of the problem's `type` and value of the rejection metric's `reason`.
        title: The problem's `title`.
    """

    status: int
    slug: str
    title: str


ANSWERS: Mapping[type[RequestError], Answer] = MappingProxyType(
    {
        MalformedBodyError: Answer(400, "malformed", "The body cannot be read"),
        UnauthorizedError: Answer(401, "unauthorized", "A token is needed"),
        ForbiddenError: Answer(403, "forbidden", "The token may not do this"),
        NotFoundError: Answer(404, "unknown", "Not held here"),
        ConflictError: Answer(409, "conflict", "The models in service do not allow this"),
        TooLargeError: Answer(413, "too_large", "The request is too large"),
        NotAcceptableError: Answer(406, "not_acceptable", "No form of the answer is acceptable"),
        MediaTypeError: Answer(415, "media_type", "The content type is not supported"),
        InvalidRequestError: Answer(422, "invalid", "The request has an unusable value"),
        OverloadedError: Answer(429, "full", "The service is busy"),
        BudgetError: Answer(429, "budget", "The latency budget cannot be kept"),
        RateLimitedError: Answer(429, "rate_limited", "This client asks too often"),
        HeadTooLargeError: Answer(431, "head_too_large", "The head is too large"),
        # No standard status says that the client left; nobody will read it, only logs show it.
        ClientGoneError: Answer(499, "client_gone", "The client closed the connection"),
        InferenceError: Answer(500, "inference", "The model failed"),
        NotReadyError: Answer(503, "not_ready", "The service is not ready"),
        DescriptorError: Answer(503, "descriptor", "The xApp descriptor cannot be used"),
        StorageError: Answer(503, "storage", "The journal cannot be written"),
        DeadlineError: Answer(504, "deadline", "The latency budget is spent"),
    }
)
