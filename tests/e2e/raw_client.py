"""An HTTP client that keeps its connection and tells exactly how it ended."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


class BrokenAnswerError(Exception):
    """The connection ended in the middle of an answer."""


@dataclass(frozen=True)
class Answered:
    """A whole answer.

    Attributes:
        status: HTTP status.
        headers: By name in small letters.
        body: All of it.
    """

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def closes(self) -> bool:
        """Whether the server says that it closes the connection."""
        return self.headers.get("connection") == "close"


class RawClient:
    """One connection.

    Args:
        address: `http://host:port`.
    """

    def __init__(self, address: str) -> None:
        place = urlsplit(address)
        assert place.hostname is not None
        assert place.port is not None
        self._socket = socket.create_connection((place.hostname, place.port), timeout=60)
        self._buffer = b""

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._socket.sendall(data)

    def post(self, path: str, body: Any, **headers: str) -> None:
        """Send a request; `receive` waits for its answer."""
        text = json.dumps(body).encode()
        self.send(post_head(path, len(text), **headers) + text)

    def receive(self) -> Answered | None:
        """The next answer; None where the connection ends before its first byte.

        Raises:
            BrokenAnswerError: It ends after that.
        """
        head, found, _ = self._until(b"\r\n\r\n")
        if not found:
            if head:
                raise BrokenAnswerError(repr(head))
            return None
        lines = head.decode("latin-1").split("\r\n")
        pairs = (line.split(":", 1) for line in lines[1:])
        headers = {name.strip().lower(): value.strip() for name, value in pairs}
        length = int(headers.get("content-length", "0"))
        while len(self._buffer) < length:
            if not self._more():
                raise BrokenAnswerError(f"{len(self._buffer)} of {length} bytes of a body")
        body, self._buffer = self._buffer[:length], self._buffer[length:]
        return Answered(int(lines[0].split(" ")[1]), headers, body)

    def _until(self, mark: bytes) -> tuple[bytes, bytes, bytes]:
        while mark not in self._buffer and self._more():
            pass
        parts = self._buffer.partition(mark)
        self._buffer = parts[2]
        return parts

    def _more(self) -> bool:
        try:
            data = self._socket.recv(65_536)
        except (ConnectionResetError, BrokenPipeError):
            return False
        self._buffer += data
        return bool(data)


def post_head(path: str, length: int, **headers: str) -> bytes:
    """The head of a POST of JSON."""
    lines = [
        f"POST {path} HTTP/1.1",
        "host: test",
        "content-type: application/json",
        f"content-length: {length}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
