"""A call of the blocking client ends with its timeout, whatever the server does with its bytes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import httpcore
import httpx
import numpy as np
import pytest

from service.client import DeadlineExceededError, RancastClient, Series, UnreachableError
from service.client.deadline_transport import DeadlineTransport, _Expiry
from tests.service.live import live, unused_address

START = datetime(2026, 11, 1, tzinfo=UTC)
Serve = Callable[[socket.socket, threading.Event], None]


def drip_head(connection: socket.socket, ended: threading.Event) -> None:
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while not ended.wait(0.02):
        connection.sendall(b"x")


def drip_body(connection: socket.socket, ended: threading.Event) -> None:
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while not ended.wait(0.02):
        connection.sendall(b" ")


def read_slowly(connection: socket.socket, ended: threading.Event) -> None:
    while not ended.wait(0.02):
        connection.recv(1000)


@contextmanager
def server(serve: Serve) -> Iterator[tuple[str, threading.Event]]:
    """A server of one connection, and what is set once nobody waits for it."""
    ended = threading.Event()

    def run() -> None:
        connection, _ = listener.accept()
        with connection:
            try:
                serve(connection, ended)
            except OSError:
                ended.set()  # the client closed it

    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", ended
        finally:
            ended.set()
            thread.join(30)


@pytest.mark.parametrize("serve", [drip_head, drip_body, read_slowly])
def test_a_server_that_moves_now_and_then_cannot_keep_a_call(serve):
    large = Series("a", START, 900, {"A": np.full(2_000_000, 0.5)})
    small = Series("a", START, 900, {"A": [0.5]})
    with server(serve) as (address, ended), RancastClient(address) as client:
        watch = threading.Timer(20, ended.set)  # ends the server, and with it a call that hangs
        watch.start()
        with pytest.raises(DeadlineExceededError):
            client.forecast([large if serve is read_slowly else small], 1, timeout_s=0.2)
        assert watch.is_alive()
        watch.cancel()


def test_connections_are_used_again_and_carry_bodies_both_ways():
    series = Series("a", START, 900, {"A": np.full(100_000, 0.5)})
    with live() as running, RancastClient(running.url) as client:
        for _ in range(3):
            answer = client.forecast([series], 4, timeout_s=20)
            assert answer.forecasts[0].values.shape == (1, 4, 3)


def test_an_address_where_nobody_listens_is_unreachable_and_nothing_was_sent():
    with RancastClient(unused_address()) as client, pytest.raises(UnreachableError) as caught:
        client.model(timeout_s=0.05)
    assert not caught.value.is_sent


def test_a_name_without_an_address_is_unreachable(monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror("no such name")

    monkeypatch.setattr("service.client.deadline_transport.socket.getaddrinfo", fail)
    transport = DeadlineTransport(httpx.create_ssl_context())
    with (
        httpx.Client(transport=transport) as client,
        pytest.raises(httpx.ConnectError, match="no such name"),
    ):
        client.get("http://rancast.example/")


def test_no_wait_begins_after_the_end():
    expiry = _Expiry()
    assert expiry.left_s(httpcore.ReadTimeout) is None
    expiry.at_s = 0.0
    with pytest.raises(httpcore.ReadTimeout):
        expiry.left_s(httpcore.ReadTimeout)
