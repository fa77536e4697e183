"""The part of a kubelet that the API server asks for the logs of containers, over TLS."""

from __future__ import annotations

import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO, ClassVar
from urllib.parse import parse_qs, urlsplit

from tests.cluster.pod_runner import PodRunner

_LOOK_SECONDS = 0.05

FindPod = Callable[[str, str], PodRunner | None]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    find: ClassVar[FindPod]
    stopping: ClassVar[threading.Event]

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing: what goes wrong here is told to who asked."""

    def do_GET(self) -> None:
        """Answer `/containerLogs/NAMESPACE/POD/CONTAINER` with the options of the API."""
        address = urlsplit(self.path)
        query = {key: values[-1] for key, values in parse_qs(address.query).items()}
        words = address.path.strip("/").split("/")
        if len(words) != 4 or words[0] != "containerLogs":
            self._refuse(404, "this node serves logs only")
            return
        pod = type(self).find(words[1], words[2])
        found = [each for each in pod.containers if each.name == words[3]] if pod else []
        if not found:
            self._refuse(404, f'container "{words[3]}" not found in pod "{words[2]}"')
            return
        previous = query.get("previous") == "true"
        container = found[0]
        file = container.log(previous=previous)
        if not file.exists():
            self._refuse(400, f'container "{words[3]}" is waiting to start')
            return

        def goes_on() -> bool:
            # Of a run that is over no more comes, though the container may run again.
            same = not previous and file == container.log()
            return same and container.running and not type(self).stopping.is_set()

        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for chunk in log_chunks(file, query, goes_on):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.close_connection = True

    def _refuse(self, status: int, message: str) -> None:
        body = message.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def log_chunks(file: Path, query: dict[str, str], goes_on: Callable[[], bool]) -> Iterator[bytes]:
    """Lines of a log as the API is asked for them.

    Args:
        file: Each line has its time before it.
        query: `follow`, `timestamps`, `tailLines`, `sinceSeconds`, `sinceTime`, `limitBytes`.
        goes_on: Whether the container runs.
    """
    stamped = query.get("timestamps") == "true"
    left = int(query["limitBytes"]) if "limitBytes" in query else None
    for line in _lines(file, query, goes_on):
        chunk = line if stamped else line.partition(b" ")[2]
        if left is not None:
            chunk = chunk[:left]
            left -= len(chunk)
        if chunk:
            yield chunk
        if left == 0:
            return


def _lines(file: Path, query: dict[str, str], goes_on: Callable[[], bool]) -> Iterator[bytes]:
    since = _since(query)
    with file.open("rb") as log:
        there = [line for line in _whole_lines(log) if line >= since]
        if "tailLines" in query:
            there = list(deque(there, int(query["tailLines"])))
        yield from there
        while query.get("follow") == "true":
            # Asked before reading, or what came just before the end would be lost.
            more = goes_on()
            yield from (line for line in _whole_lines(log) if line >= since)
            if not more:
                return
            time.sleep(_LOOK_SECONDS)


def _whole_lines(log: BinaryIO) -> Iterator[bytes]:
    """What was added since the last reading; a line that is still being written is left."""
    while line := log.readline():
        if not line.endswith(b"\n"):
            log.seek(-len(line), 1)
            return
        yield line


def _since(query: dict[str, str]) -> bytes:
    """Times are written so that they sort as they follow each other."""
    if "sinceTime" in query:
        return query["sinceTime"].removesuffix("Z").encode()
    if "sinceSeconds" in query:
        start = datetime.now(UTC) - timedelta(seconds=int(query["sinceSeconds"]))
        return start.strftime("%Y-%m-%dT%H:%M:%S").encode()
    return b""


class LogServer:
    """Serves logs on a free port of 127.0.0.1."""

    def __init__(self, context: ssl.SSLContext, find: FindPod) -> None:
        self._stopping = threading.Event()
        handler = type(
            "Handler", (_Handler,), {"find": staticmethod(find), "stopping": self._stopping}
        )
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        # Or a client that says nothing would keep all others waiting.
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)
