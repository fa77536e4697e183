"""A lean HTTP/1.1 client: prebuilt bytes out, status and body in, one exchange a connection.

A client that builds requests and objects for their answers takes longer than the server that is to
be measured. This one parses the status line, the length and whether the connection stays open,
which is all that answers of a known length need; the chunked form is read too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

LOST = 0
"""Status of an exchange whose connection broke before the answer was whole."""

_HEAD_END = b"\r\n\r\n"
_CHUNK_END = b"0\r\n\r\n"


class ProtocolError(Exception):
    """The server's answer is not the HTTP that this client reads."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of one request.

    Attributes:
        status: HTTP status, `LOST` where there is none.
        sent_s: When its bytes were handed to the socket, on the performance counter.
        done_s: When the last byte of the answer was read, or the connection broke.
        body: The answer's body; as it was sent, where it came in chunks.
    """

    status: int
    sent_s: float
    done_s: float
    body: bytes


OnReply = Callable[["Connection", Reply], None]


class Connection(asyncio.Protocol):
    """One keep-alive connection; at most one request is under way.

    Args:
        on_lost: Told when the server closed it while nothing was under way.
    """

    def __init__(self, on_lost: Callable[[Connection], None] = lambda _: None) -> None:
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._on_reply: OnReply | None = None
        self._sent_s = 0.0
        self._status = LOST
        self._body_begin = 0
        self._end: int | None = None
        self._keeps = True

    @property
    def is_open(self) -> bool:
        """Whether another request can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self._transport = transport  # type: ignore[assignment]

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Called by the event loop: what was under way is lost."""
        self._transport = None
        if self._on_reply is None:
            self._on_lost(self)
        else:
            self._finish(LOST, b"")

    def send(self, request: bytes, on_reply: OnReply) -> float:
        """Hand a request to the socket.

        Args:
            request: Head and body.
            on_reply: Told once, when the answer is whole or lost.

        Returns:
            The instant.
        """
        if self._on_reply is not None:
            raise ProtocolError("expected the answer to the last request before the next one")
        self._on_reply = on_reply
        self._sent_s = time.perf_counter()
        if self._transport is None or self._transport.is_closing():
            self._finish(LOST, b"")
        else:
            self._transport.write(request)
        return self._sent_s

    def close(self) -> None:
        """Close it; what is under way is lost."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close it at once, as a client that goes away."""
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        received = self._received
        received += data
        if self._status == LOST and not self._read_head():
            return
        if self._end is None:
            if not received.endswith(_CHUNK_END):
                return
            self._end = len(received)
        if len(received) >= self._end:
            self._finish(self._status, bytes(received[self._body_begin : self._end]))

    def _read_head(self) -> bool:
        """Whether the head is whole; then status, length and what follows are known."""
        received = self._received
        head_end = received.find(_HEAD_END)
        if head_end < 0:
            return False
        head = bytes(received[:head_end]).lower()
        if not head.startswith(b"http/1.1 "):
            raise ProtocolError(f"expected an answer in HTTP/1.1, got {head[:40]!r}")
        self._status = int(head[9:12])
        self._keeps = b"\r\nconnection: close" not in head
        self._body_begin = head_end + len(_HEAD_END)
        at = head.find(b"\r\ncontent-length:")
        if at >= 0:
            begin = at + len(b"\r\ncontent-length:")
            stop = head.find(b"\r", begin)
            length = int(head[begin : stop if stop >= 0 else None])
            self._end = self._body_begin + length
        elif b"\r\ntransfer-encoding: chunked" not in head:
            raise ProtocolError(f"expected an answer whose length is known, got {head!r}")
        return True

    def _finish(self, status: int, body: bytes) -> None:
        on_reply, self._on_reply = self._on_reply, None
        self._received.clear()
        self._status, self._end = LOST, None
        if status != LOST and not self._keeps:
            self.close()
        if on_reply is not None:
            on_reply(self, Reply(status, self._sent_s, time.perf_counter(), body))


async def connect(port: int, on_lost: Callable[[Connection], None] = lambda _: None) -> Connection:
    """A connection to a server of this machine."""
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: Connection(on_lost), "127.0.0.1", port)
    return connection


def build_request(
    path: str,
    body: bytes = b"",
    *,
    method: str = "POST",
    content_type: str = "application/json",
    **headers: str,
) -> bytes:
    """The bytes of a request.

    Args:
        path: As it is sent.
        body: Of this length; none is announced where it is empty and the method is GET.
        method: HTTP method.
        content_type: Of the body.
        headers: Others; underscores in their names stand for hyphens.
    """
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"]
    if body or method != "GET":
        lines += [f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("ascii") + _HEAD_END + body
