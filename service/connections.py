"""Connections that cost nothing: how many, how long they may be silent, how large a head may grow.

The server alone bounds none of it: a connection that never says a word stays for ever, and the
head of a request grows until memory ends. Its own limit of connections refuses requests on
connections that are old and well; here the new connection is closed instead.
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


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What one server grants.

    Attributes:
        most_connections: At a time; one more is closed at once.
        head_s: Time in which the head of a request has to be whole, counted from the connection for
            the first one, from its first byte for the others.
        most_head_bytes: Bytes of a head that is not whole yet.
    """

    most_connections: int
    head_s: float
    most_head_bytes: int


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
        self._head_bytes = 0
        self._in_head = False
        self._began_here = False

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
        """Parse what came; close where a head grows too large."""
        if self.transport.is_closing():
            return
        self._began_here = False
        super().data_received(data)
        # What a head shares its first piece with, the end of a body say, is not counted against it.
        if not self._in_head or self._began_here:
            return
        self._head_bytes += len(data)
        if self._head_bytes > self._limits.most_head_bytes:
            self.transport.write(_TOO_LARGE)
            self._close("head_too_large")

    def on_message_begin(self) -> None:
        """The first byte of a request: the rest of its head has to follow in time."""
        super().on_message_begin()
        self._in_head = True
        self._began_here = True
        self._head_bytes = 0
        if self._head_timer is None:
            self._await_head()

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._in_head = False
        self._forget_timer()
        super().on_headers_complete()

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
