"""Connections that cost nothing: how many, how long they may be silent, what they may make us keep.

The server alone bounds none of it: a connection that never says a word stays for ever, and heads,
trailers and requests that wait for their turn grow until memory ends. Its own limit of connections
refuses requests on connections that are old and well; here the new connection is closed instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.metrics import Metrics

_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


# Requests of one connection that may wait while the first of them is answered.
MOST_PIPELINED = 64


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What one server grants.

    Attributes:
        most_connections: At a time; one more is closed at once.
        head_s: Time in which the head of a request has to be whole, counted from the connection for
            the first one, from its first byte for the others.
        most_head_bytes: Bytes of a head that is not whole yet, and of everything else that is not
            the body itself: trailers, sizes of chunks, empty lines.
        most_headers: Headers of a request that are kept; the application refuses what has more.
    """

    most_connections: int
    head_s: float
    most_head_bytes: int
    most_headers: int


class GuardedProtocol(HttpToolsProtocol):
    """The server's protocol, with an eye on connections that do not get on.

    Args:
        limits: What is granted.
        metrics: Counts what is closed.
        arguments: Of the server's own protocol.
    """

    def __init__(self, limits: ConnectionLimits, metrics: Metrics, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._limits = limits
        self._metrics = metrics
        self._head_timer: asyncio.TimerHandle | None = None
        self._in_head = False
        self._header_bytes = 0
        # Bytes since the last step forward, and whether there was one in the piece that is parsed.
        self._idle_bytes = 0
        self._steps = False
        self._is_overrun = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, or close it where there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self._limits.most_connections:
            self._close("full")
            return
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._forget_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came; close where it is no request, no body, and too much of it."""
        if self.transport.is_closing():
            return
        self._steps = False
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._is_overrun:
            self._close("pipelined")
            return
        # A piece with a step forward is not counted: most of it may be the end of a body, say.
        self._idle_bytes = 0 if self._steps else self._idle_bytes + len(data)
        if self._idle_bytes > self._limits.most_head_bytes:
            if self._in_head and (self.cycle is None or self.cycle.response_complete):
                self.transport.write(_TOO_LARGE)
            self._close("head_too_large")

    def on_message_begin(self) -> None:
        """The first byte of a request: the rest of its head has to follow in time."""
        super().on_message_begin()
        self._steps = True
        self._in_head = True
        self._header_bytes = 0
        if self._head_timer is None:
            self._await_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header of a head, but not one too many more than one; and no trailer.

        Trailers come when the head has long been checked. They may be dropped (RFC 9112, section
        7.1.2).
        """
        limits = self._limits
        if not self._in_head or len(self.headers) > limits.most_headers:
            return
        if self._header_bytes <= limits.most_head_bytes:
            self._header_bytes += len(name) + len(value)
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._steps = True
        self._in_head = False
        self._forget_timer()
        if len(self.pipeline) < MOST_PIPELINED:
            super().on_headers_complete()
        else:
            self._is_overrun = True

    def on_body(self, body: bytes) -> None:
        """A piece of a body."""
        self._steps = True
        if not self._is_overrun:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._steps = True
        if not self._is_overrun:
            super().on_message_complete()

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self._limits.head_s, self._too_slow)

    def _too_slow(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self._close("slow")

    def _forget_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _close(self, reason: str) -> None:
        self._forget_timer()
        self._metrics.count_closed(reason)
        self.transport.close()


def guarded_protocol(limits: ConnectionLimits, metrics: Metrics) -> Callable[..., asyncio.Protocol]:
    """What the server calls for each connection."""

    def make(**arguments: Any) -> asyncio.Protocol:
        return GuardedProtocol(limits, metrics, **arguments)

    return make
