"""Connections that cost nothing: how many, how long they may be silent, what they may make us keep.

The server alone bounds none of it: a connection that never says a word stays for ever, and heads,
trailers and requests that wait for their turn grow until memory ends. Its own limit of connections
refuses requests on connections that are old and well; here the new connection is closed instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from service.early_refusals import EarlyRefusals
from service.gate import SEEN_KEY
from service.metrics import Metrics

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application

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
            the first one, from its first byte for the others; and the rest of a request that was
            answered before it was whole, counted from its answer.
        answer_s: Time in which a client has to take what was written for it.
        most_head_bytes: Bytes of a head that is not whole yet, and of everything else that is not
            the body itself: trailers, sizes of chunks, empty lines.
        most_headers: Headers of a request that are kept; the application refuses what has more.
    """

    most_connections: int
    head_s: float
    answer_s: float
    most_head_bytes: int
    most_headers: int


class GuardedProtocol(HttpToolsProtocol):
    """The server's protocol, with an eye on connections that do not get on.

    Args:
        limits: What is granted.
        metrics: Counts what is closed.
        refusals: Answers requests that need no more than their head for that.
        arguments: Of the server's own protocol.
    """

    def __init__(
        self,
        limits: ConnectionLimits,
        metrics: Metrics,
        refusals: EarlyRefusals | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self._refusals = refusals
        # The request was answered by its head alone: what is left of it is not read.
        self._is_refused = False
        self._limits = limits
        self._metrics = metrics
        # What has begun has to be whole by then. The timer may be set for earlier: it looks again.
        self._due_s: float | None = None
        self._arrival_timer: asyncio.TimerHandle | None = None
        self._answer_timer: asyncio.TimerHandle | None = None
        self._in_head = False
        self._header_bytes = 0
        # Bytes since the last step forward, and whether there was one in the piece that is parsed.
        self._idle_bytes = 0
        self._steps = False
        self._is_overrun = False
        self._in_work: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, or close it where there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self._limits.most_connections:
            self._close("full")
            return
        self._await_rest()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection and all of its requests; the server itself tells the last alone."""
        self._forget_timer()
        if self._arrival_timer is not None:
            self._arrival_timer.cancel()
        self._forget_answer_timer()
        self.pipeline.clear()
        if self._in_work is not None and not self._in_work.response_complete:
            self._in_work.disconnected = True
            self._in_work.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came; close where it is no request, no body, and too much of it."""
        if self.transport.is_closing():
            return
        self._steps = False
        idle = self.timeout_keep_alive_task
        super().data_received(data)
        if self.transport.is_closing():
            return
        if idle is not None and self._is_idle():
            # Whatever comes stops the timer, but only a request is a reason to.
            self.timeout_keep_alive_task = self.loop.call_at(
                idle.when(), self.timeout_keep_alive_handler
            )
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
        if self._due_s is None:
            self._await_rest()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header of a head, and of too many as many as it takes to be refused.

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
        if self._refusals is not None and self._refuse(self._refusals):
            return
        if len(self.pipeline) < MOST_PIPELINED:
            super().on_headers_complete()
        else:
            self._is_overrun = True

    def on_body(self, body: bytes) -> None:
        """A piece of a body."""
        self._steps = True
        if not self._is_overrun and not self._is_refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._steps = True
        self._forget_timer()
        if self._is_refused:
            self._is_refused = False
            self._await_next()
        elif not self._is_overrun:
            super().on_message_complete()

    def _refuse(self, refusals: EarlyRefusals) -> bool:
        """Answer a request by its head alone, where that can be done; whether it was."""
        parser = self.parser
        if not self._is_free() or not parser.should_keep_alive() or parser.should_upgrade():
            return False
        seen, answer = refusals.look(
            parser.get_method(),
            self.url,
            self.headers,
            self.client,
            self.server_state.default_headers,
        )
        if answer is None:
            if seen is not None:
                cast("dict[str, Any]", self.scope)[SEEN_KEY] = seen
            return False
        self.transport.write(answer)
        self.server_state.total_requests += 1
        self._is_refused = True
        self._await_rest()
        return True

    def _is_free(self) -> bool:
        """Whether no other request of this connection is in work, and it takes more."""
        is_answered = self.cycle is None or self.cycle.response_complete
        return is_answered and not self.transport.is_closing()

    def _await_next(self) -> None:
        """Be idle, for not too long."""
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def on_response_complete(self) -> None:
        """An answer was written: what is left of its request, and the client, must not be late."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._await_reader()
        elif self.cycle.response_complete and self.cycle.more_body:
            self._await_rest()

    def pause_writing(self) -> None:
        """The client does not take what is written as fast as it is."""
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        """The client took it."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._forget_answer_timer()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, and close."""
        super().send_400_response(msg)
        self._await_reader()

    def shutdown(self) -> None:
        """The server stops: close once nothing is in work."""
        super().shutdown()
        if self.transport.is_closing():
            self._await_reader()

    def timeout_keep_alive_handler(self) -> None:
        """Nothing more was asked."""
        super().timeout_keep_alive_handler()
        self._await_reader()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._in_work = cycle
        super()._start_asgi_task(cycle, app)

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: to refuse an upgrade is no fault, and whoever asks could fill the log."""

    def _is_idle(self) -> bool:
        """Whether no request is in work, and none has begun."""
        is_answered = self.cycle is None or self.cycle.response_complete
        return not self._in_head and not self._is_refused and is_answered

    def _await_rest(self) -> None:
        """What the client has begun has to be whole in time."""
        self._due_s = self.loop.time() + self._limits.head_s
        if self._arrival_timer is None:
            self._arrival_timer = self.loop.call_at(self._due_s, self._look_at_arrival)

    def _await_reader(self) -> None:
        """What is written has to be taken in time: even a closed connection waits for that."""
        # An answer may still be written to a connection that is lost.
        if self._answer_timer is None and self in self.connections:
            self._answer_timer = self.loop.call_later(self._limits.answer_s, self._unread)

    def _look_at_arrival(self) -> None:
        self._arrival_timer = None
        if self._due_s is None or self.transport.is_closing():
            return
        if self.loop.time() < self._due_s:
            self._arrival_timer = self.loop.call_at(self._due_s, self._look_at_arrival)
        else:
            self._close("slow")

    def _unread(self) -> None:
        self._answer_timer = None
        self._forget_timer()
        self._metrics.count_closed("unread")
        self.transport.abort()

    def _forget_timer(self) -> None:
        self._due_s = None  # to cancel a timer for each request costs more than to let it look

    def _forget_answer_timer(self) -> None:
        if self._answer_timer is not None:
            self._answer_timer.cancel()
            self._answer_timer = None

    def _close(self, reason: str) -> None:
        self._forget_timer()
        self._metrics.count_closed(reason)
        self.transport.close()
        self._await_reader()


def guarded_protocol(
    limits: ConnectionLimits, metrics: Metrics, refusals: EarlyRefusals | None = None
) -> Callable[..., GuardedProtocol]:
    """What the server calls for each connection."""

    def make(**arguments: Any) -> GuardedProtocol:
        return GuardedProtocol(limits, metrics, refusals, **arguments)

    return make
