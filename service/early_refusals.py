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

from service.access_log import AccessLine, write_line
from service.container import Services
from service.demands import check_head, headed_in
from service.errors import ANSWERS, OverloadedError, RequestError
from service.problems import MEDIA_TYPE, problem_text
from service.request_identity import REQUEST_ID_HEADER, RequestIdentity, identify, instance_of_id

PATH = "/v1/forecast"
"""Its requests are answered by the default model, as far as their heads say."""

_URL = PATH.encode("ascii")
_STATUS_LINE = b"HTTP/1.1 429 Too Many Requests\r\n"
# What a browser, a tracing proxy or a client that waits for a word expects of the answer.
_LEFT = frozenset((b"transfer-encoding", b"expect", b"origin", b"traceparent"))
_MOST_BODY_BYTES, _MOST_DIGITS = 65_536, 6

Headers = Sequence[tuple[bytes, bytes]]
Address = tuple[str, int]


class Verdict(NamedTuple):
    """What is to become of a request.

    Attributes:
        is_checked: Whether its budget was measured.
        answer: The refusal as it is sent, None where the application answers.
    """

    is_checked: bool
    answer: bytes | None = None


NOT_SEEN, LET_THROUGH = Verdict(is_checked=False), Verdict(is_checked=True)


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
        if not self._is_open or url != _URL or method != b"POST" or not self._is_plain(headers):
            return NOT_SEEN
        services = self._services
        said = headed_in(headers)
        if said.budget_ms is None:
            return NOT_SEEN
        arrival_s = services.clock.monotonic_s()
        try:
            check_head(services, said, services.require().models.default, arrival_s)
        except OverloadedError as error:
            identity = identify(headers)
            text = self._text(error, identity, client, arrival_s, float(said.budget_ms))
            return Verdict(True, _written(error, identity, text, server_headers))
        except RequestError:
            return NOT_SEEN
        return LET_THROUGH

    def _is_plain(self, headers: Headers) -> bool:
        """Whether a head is one that the door lets in, of a request with a small body."""
        if len(headers) > self._most_headers:
            return False
        size = len(_URL)
        for name, value in headers:
            size += len(name) + len(value)
            if name in _LEFT:
                return False
            if name == b"content-length" and not (
                len(value) <= _MOST_DIGITS and value.isdigit() and int(value) <= _MOST_BODY_BYTES
            ):
                return False
        return size <= self._most_head_bytes

    def _text(
        self,
        error: OverloadedError,
        identity: RequestIdentity,
        client: Address | None,
        arrival_s: float,
        budget_ms: float,
    ) -> bytes:
        """The body of a refusal, which is counted and logged as any other."""
        services, answer = self._services, ANSWERS[type(error)]
        text = problem_text(answer, str(error), instance_of_id(identity.request_id))
        duration_s = services.clock.monotonic_s() - arrival_s
        services.metrics.count_rejected(answer.slug)
        services.metrics.observe_request(PATH, duration_s, budget_ms)
        if self._logs:
            line = AccessLine("POST", PATH, PATH, answer.status, duration_s, 0, len(text), client)
            write_line(logging.INFO, line, identity, services.clock.now_ms())
        return text


def _written(
    error: OverloadedError, identity: RequestIdentity, text: bytes, server_headers: Headers
) -> bytes:
    """A refusal as it is sent."""
    fields = [
        *server_headers,
        (b"content-type", MEDIA_TYPE.encode("ascii")),
        (b"content-length", str(len(text)).encode("ascii")),
        (b"retry-after", str(error.retry_after_s).encode("ascii")),
        (REQUEST_ID_HEADER.lower().encode("ascii"), identity.request_id.encode("ascii")),
    ]
    head = b"".join([b"%b: %b\r\n" % field for field in fields])
    return b"%b%b\r\n%b" % (_STATUS_LINE, head, text)
