"""A transport whose every wait ends with the call, however many waits there are.

httpx bounds each wait for the network by itself, so a server that drips its headers, or reads a
body slowly, keeps a call for as long as it likes. Here each wait is bounded by what the call still
has, which its thread has noted before.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore
import httpx


class DeadlineTransport(httpx.BaseTransport):
    """HTTP/1.1 over pooled connections, for calls with a deadline; for any number of threads.

    Args:
        tls: Certificates.
    """

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._backend = _Backend()
        self._pool = httpcore.ConnectionPool(
            ssl_context=tls, max_connections=100, network_backend=self._backend
        )

    @contextmanager
    def within(self, remaining_s: float) -> Iterator[None]:
        """All waits of this thread inside end after so many seconds."""
        self._backend.expiry.at_s = time.monotonic() + remaining_s
        try:
            yield
        finally:
            self._backend.expiry.at_s = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and read the head of its answer.

        Raises:
            httpx.TimeoutException: The time is over.
            httpx.TransportError: There is no connection, or it broke.
        """
        url = request.url
        with _as_httpx():
            answer = self._pool.handle_request(
                httpcore.Request(
                    method=request.method,
                    url=httpcore.URL(
                        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                    ),
                    headers=request.headers.raw,
                    content=request.stream,
                    # The pool's wait for a free connection, which is none of the network's.
                    extensions={
                        "timeout": {"pool": self._backend.expiry.left_s(httpcore.PoolTimeout)}
                    },
                )
            )
        return httpx.Response(
            answer.status, headers=answer.headers, stream=_Body(answer), extensions={}
        )

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        with _as_httpx():
            yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


@contextmanager
def _as_httpx() -> Iterator[None]:
    try:
        yield
    except httpcore.ConnectError as error:
        raise httpx.ConnectError(str(error)) from error
    except (httpcore.ConnectTimeout, httpcore.PoolTimeout) as error:
        raise httpx.ConnectTimeout(str(error)) from error
    except httpcore.TimeoutException as error:
        raise httpx.ReadTimeout(str(error)) from error
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise httpx.ReadError(str(error)) from error


class _Expiry(threading.local):
    """When the call of this thread ends, None where there is none."""

    at_s: float | None = None

    def left_s(self, kind: type[Exception]) -> float | None:
        """Seconds until then.

        Raises:
            Exception: Of this kind: none are left.
        """
        if self.at_s is None:
            return None
        left_s = self.at_s - time.monotonic()
        if left_s <= 0:
            raise kind("the call's time is over")
        return left_s


class _Backend(httpcore.NetworkBackend):
    def __init__(self) -> None:
        self.expiry = _Expiry()
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - the call's time holds instead
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        trouble: Exception = httpcore.ConnectError(f"{host} has no address")
        # One by one, because each address may use up the time of all.
        for *_, address in found:
            try:
                stream = self._inner.connect_tcp(
                    str(address[0]),
                    port,
                    self.expiry.left_s(httpcore.ConnectTimeout),
                    local_address,
                    socket_options,
                )
            except httpcore.ConnectError as error:
                trouble = error
            else:
                return _Stream(stream, self.expiry)
        raise trouble


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, expiry: _Expiry) -> None:
        self._inner = inner
        self._expiry = expiry

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        return self._inner.read(max_bytes, self._expiry.left_s(httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        wire: socket.socket = self._inner.get_extra_info("socket")
        left = memoryview(buffer)
        try:
            while left:
                wire.settimeout(self._expiry.left_s(httpcore.WriteTimeout))
                left = left[wire.send(left) :]
        except TimeoutError as error:
            raise httpcore.WriteTimeout(str(error)) from error
        except OSError as error:
            raise httpcore.WriteError(str(error)) from error

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002 - the call's time holds instead
    ) -> httpcore.NetworkStream:
        left_s = self._expiry.left_s(httpcore.ConnectTimeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, left_s), self._expiry)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
