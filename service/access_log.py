"""One line of JSON a request, on standard output; and the request's id on its answer.

Of the headers of a request only X-Request-Id and the trace id of traceparent enter a line, and only
in the forms that `service.request_identity` takes; no query does. So no token can, unless a client
sends it as its id or in its path. Everything that is not ASCII is escaped, so nothing that a client
sends can forge a line.
"""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TextIO

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.clock import Clock
from service.line_handler import LineHandler
from service.request_identity import (
    REQUEST_ID_HEADER,
    RequestIdentity,
    identify,
    keep_identity,
)
from service.timing import route_of

LOGGER_NAME = "rancast.access"
# Asked every few seconds by machines; logged at level debug.
QUIET_PATHS = (
    "/healthz",
    "/readyz",
    "/metrics",
    "/v2/health/",
    "/ric/v1/health/",
    "/ric/v1/metrics",
)
_FAILED = 500
_CLIENT_GONE = 499
_ID_HEADER = REQUEST_ID_HEADER.lower().encode()
_TRACE_HEADER = b"traceparent"


def configure_access_log(level: str, stream: TextIO | None = None) -> None:
    """Write access lines to `stream` (standard output by default), apart from the events' log."""
    handler = LineHandler(stream or sys.stdout)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger(LOGGER_NAME)
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(level.upper())


class AccessLog:
    """Identifies each request, names it on its answer, and logs it once it is answered.

    Args:
        app: What answers.
        clock: Times and dates the lines.
        enabled: Whether lines are written; requests are identified all the same.
    """

    def __init__(self, app: ASGIApp, clock: Clock, *, enabled: bool) -> None:
        self._app = app
        self._clock = clock
        self._enabled = enabled
        self._logger = logging.getLogger(LOGGER_NAME)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application with the identity in the scope."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        identity = identify(scope["headers"])
        keep_identity(scope, identity)
        level = logging.DEBUG if scope["path"].startswith(QUIET_PATHS) else logging.INFO
        if self._enabled and self._logger.isEnabledFor(level):
            await self._logged(scope, receive, send, identity, level)
            return

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                _name(message, identity)
            await send(message)

        await self._app(scope, receive, send_named)

    async def _logged(
        self, scope: Scope, receive: Receive, send: Send, identity: RequestIdentity, level: int
    ) -> None:
        # The path as it came; what routes by another form of it changes the scope.
        path = scope["path"]
        arrival_s = self._clock.monotonic_s()
        bytes_in = bytes_out = 0
        status = 0

        async def receive_counted() -> Message:
            nonlocal bytes_in
            message = await receive()
            bytes_in += len(message.get("body", b""))
            return message

        async def send_counted(message: Message) -> None:
            nonlocal bytes_out, status
            if message["type"] == "http.response.start":
                status = message["status"]
                _name(message, identity)
            else:
                bytes_out += len(message.get("body", b""))
            await send(message)

        failed = True
        try:
            await self._app(scope, receive_counted, send_counted)
            failed = False
        finally:
            line = AccessLine(
                method=scope["method"],
                route=route_of(scope),
                path=path,
                status=status or (_FAILED if failed else _CLIENT_GONE),
                duration_s=self._clock.monotonic_s() - arrival_s,
                bytes_in=bytes_in,
                bytes_out=bytes_out,
                client=scope.get("client"),
            )
            write_line(level, line, identity, self._clock.now_ms())


@dataclass(frozen=True, slots=True)
class AccessLine:
    """What a line says of a request, beside who asked.

    Attributes:
        method: Of the request.
        route: Template of the route that answered.
        path: As it came.
        status: Of the answer.
        duration_s: From its arrival to its answer.
        bytes_in: Of its body.
        bytes_out: Of the answer's.
        client: Address and port, None where they are not known.
    """

    method: str
    route: str
    path: str
    status: int
    duration_s: float
    bytes_in: int
    bytes_out: int
    client: tuple[str, int] | None


def write_line(level: int, line: AccessLine, identity: RequestIdentity, now_ms: int) -> None:
    """Log a request that was answered just now."""
    fields = {
        "ts": _stamp(now_ms),
        "method": line.method,
        "route": line.route,
        "path": line.path,
        "status": line.status,
        "duration_ms": round(line.duration_s * 1000, 3),
        "bytes_in": line.bytes_in,
        "bytes_out": line.bytes_out,
        "client": line.client[0] if line.client else None,
        "token": identity.token_name,
        "request_id": identity.request_id,
        "trace_id": None if identity.trace is None else identity.trace.trace_id,
    }
    logging.getLogger(LOGGER_NAME).log(level, json.dumps(fields, separators=(",", ":")))


def _name(message: Message, identity: RequestIdentity) -> None:
    """Put the request's id, and the trace where there is one, on the head of an answer."""
    headers = [*message.get("headers", ()), (_ID_HEADER, identity.request_id.encode())]
    if identity.trace is not None:
        headers.append((_TRACE_HEADER, identity.trace.header))
    message["headers"] = headers


def _stamp(now_ms: int) -> str:
    stamp = datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return stamp.replace("+00:00", "Z")
