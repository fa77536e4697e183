"""Refuses what cannot be in time as soon as its head is there: no task, no routing, no body.

Where more is asked for than can be answered, most requests are refused, and what a refusal takes is
missing where answers are made. A request that states its budget in a header is measured against
what the engine has promised. Whatever else may be wrong with it, or has to be looked at first, is
left to the application, which says the same of it, later.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from model.predictor import Rung
from service.access_log import AccessLine, write_line
from service.bodies import JSON_MEDIA_TYPE
from service.budget import Deadline
from service.container import Services
from service.demands import demand_of, headed_in
from service.engine import Priority
from service.errors import ANSWERS, OverloadedError, RequestError
from service.gate import FORECAST_PATH, Seen
from service.problems import MEDIA_TYPE, problem_text
from service.request_identity import REQUEST_ID_HEADER, RequestIdentity, identify, instance_of_id

# Its requests are answered by the default model, as far as their heads say.
_URL = FORECAST_PATH.encode("ascii")
# What a browser, a tracing proxy or a client that waits for a word expects of the answer.
_LEFT = frozenset((b"transfer-encoding", b"expect", b"origin", b"traceparent"))
_JSON = JSON_MEDIA_TYPE.encode("ascii")
_ID = REQUEST_ID_HEADER.lower().encode("ascii")
_MOST_BODY_BYTES, _MOST_DIGITS = 65_536, 6
# A client's heads are alike; looking through one takes as long as refusing it.
_MOST_KNOWN, _MOST_KNOWN_BYTES = 128, 2_048

Headers = Sequence[tuple[bytes, bytes]]
Address = tuple[str, int]


class Demand(NamedTuple):
    """What a head asks for.

    Attributes:
        budget_ms: Latency budget.
        least_rung: The least rung that is an answer.
        priority: Whose answer waits for whose.
        body_bytes: Length of the body to come, 0 where that says nothing of what it holds.
    """

    budget_ms: float
    least_rung: Rung
    priority: Priority
    body_bytes: int


class Verdict(NamedTuple):
    """What is to become of a request.

    Attributes:
        seen: What is known of it, where its budget was measured and can be kept.
        answer: The refusal as it is sent, None where the application answers.
    """

    seen: Seen | None = None
    answer: bytes | None = None


NOT_SEEN = Verdict()


class EarlyRefusals:
    """Answers heads of requests that need no more than that.

    Args:
        services: The engine and its models.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        settings = services.settings
        # Who asks, and how often, is for the door to say first.
        self._is_open = settings.token_file is None and settings.rate_limit_per_second is None
        self._logs = settings.access_log
        self._most_headers = settings.max_headers
        self._most_head_bytes = settings.max_head_bytes
        self._known: dict[tuple[tuple[bytes, bytes], ...], Demand | None] = {}
        self._server_headers: Headers = ()
        self._server_lines = b""

    def look(
        self,
        method: bytes,
        url: bytes,
        headers: Headers,
        client: Address | None,
        server_headers: Headers,
    ) -> Verdict:
        """What is to become of a request whose head is there.

        Args:
            method: Of the request.
            url: As it came.
            headers: As ASGI has them.
            client: Address and port.
            server_headers: Of every answer.
        """
        if not self._is_open or url != _URL or method != b"POST":
            return NOT_SEEN
        demand = self._demand(headers)
        if demand is None:
            return NOT_SEEN
        services = self._services
        arrival_s = services.clock.monotonic_s()
        deadline = Deadline(arrival_s, demand.budget_ms)
        samples = services.body_work.least_samples(demand.body_bytes)
        try:
            running = services.require()
            running.engine.check_door(
                running.models.default.ladder,
                deadline,
                demand.least_rung,
                demand.priority,
                samples,
            )
        except OverloadedError as error:
            identity = identify(headers)
            text = self._text(error, identity, client, deadline)
            return Verdict(answer=self._written(error, identity, text, server_headers))
        except RequestError:
            return NOT_SEEN
        return Verdict(Seen(demand.body_bytes, samples))

    def _demand(self, headers: Headers) -> Demand | None:
        """What a head asks for; None where the application has to look at it."""
        head = tuple(headers)
        try:
            return self._known[head]
        except KeyError:
            pass
        size = len(_URL) + sum(len(name) + len(value) for name, value in headers)
        demand = self._read(headers, size)
        # An id is a new one each time.
        if size <= _MOST_KNOWN_BYTES and all(name != _ID for name, _ in headers):
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[head] = demand
        return demand

    def _read(self, headers: Headers, size: int) -> Demand | None:
        if size > self._most_head_bytes or not self._is_plain(headers):
            return None
        said = headed_in(headers)
        if said.budget_ms is None:
            return None
        try:
            deadline, least_rung, priority = demand_of(self._services.policy, said, 0.0)
        except RequestError:
            return None
        return Demand(deadline.budget_ms, least_rung, priority, _body_bytes(headers))

    def _is_plain(self, headers: Headers) -> bool:
        """Whether a head is one that the door lets in, of a request with a small body."""
        if len(headers) > self._most_headers:
            return False
        for name, value in headers:
            if name in _LEFT:
                return False
            if name == b"content-length" and not (
                len(value) <= _MOST_DIGITS and value.isdigit() and int(value) <= _MOST_BODY_BYTES
            ):
                return False
        return True

    def _text(
        self,
        error: OverloadedError,
        identity: RequestIdentity,
        client: Address | None,
        deadline: Deadline,
    ) -> bytes:
        """The body of a refusal, which is counted and logged as any other."""
        services, answer = self._services, ANSWERS[type(error)]
        text = problem_text(answer, str(error), instance_of_id(identity.request_id))
        duration_s = services.clock.monotonic_s() - deadline.arrival_s
        services.metrics.count_rejected(FORECAST_PATH, answer.slug)
        services.metrics.observe_request(FORECAST_PATH, duration_s, None)
        if self._logs:
            line = AccessLine(
                "POST",
                FORECAST_PATH,
                FORECAST_PATH,
                answer.status,
                duration_s,
                0,
                len(text),
                client,
            )
            write_line(logging.INFO, line, identity, services.clock.now_ms())
        return text

    def _written(
        self,
        error: OverloadedError,
        identity: RequestIdentity,
        text: bytes,
        server_headers: Headers,
    ) -> bytes:
        """A refusal as it is sent."""
        if server_headers is not self._server_headers:  # the server makes new ones every second
            self._server_headers = server_headers
            self._server_lines = b"".join([b"%b: %b\r\n" % field for field in server_headers])
        return (
            b"HTTP/1.1 429 Too Many Requests\r\n%b"
            b"content-type: %b\r\ncontent-length: %d\r\nretry-after: %d\r\n%b: %b\r\n\r\n%b"
        ) % (
            self._server_lines,
            MEDIA_TYPE.encode("ascii"),
            len(text),
            error.retry_after_s,
            _ID,
            identity.request_id.encode("ascii"),
            text,
        )


def _body_bytes(headers: Headers) -> int:
    """Length of a body that is sent as it is, 0 of any other."""
    length = 0
    for name, value in headers:
        if name == b"content-encoding" or (name == b"content-type" and not value.startswith(_JSON)):
            return 0
        if name == b"content-length":
            length = int(value)
    return length
